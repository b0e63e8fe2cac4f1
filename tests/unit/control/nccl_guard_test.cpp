// Orders on nccl.* that would change nothing.
#include "runtime/control/nccl_guard.h"

#include <gmock/gmock.h>

#include "runtime/control/schema_table.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;

class NcclGuardTest : public ::testing::Test, public Steerable, public NcclRenewal {
 protected:
  Result<void> prepare(const Order&, const Settings&) override {
    ++prepared_;
    return {};
  }
  std::vector<Moved> settings_changed(const Settings&, std::int64_t) override {
    return {{"optim.lr", 1.0, 2.0}};
  }
  Result<Json> call(const Call&, std::int64_t step) override { return Json(step); }
  Result<void> rejoin(const Rejoin&) override { return fail(ErrorKind::lost, "handed on"); }
  Result<double> renew(const Settings& after) override {
    return static_cast<double>(after.integer("nccl.max_ctas"));
  }

  std::string prepare(bool has_communicator, const char* name) {
    NcclGuard guard(*this, settings_, has_communicator ? this : nullptr);
    Order order;
    order.changes = {{"log.every", std::int64_t{5}, std::nullopt}, {name, std::int64_t{20}, std::nullopt}};
    const auto result = guard.prepare(order, settings_);
    return result ? "accepted" : result.error().message;
  }

  const Schema schema_ = runtime_schema();
  Settings settings_ = Settings::defaults(schema_);
  int prepared_ = 0;
};

TEST_F(NcclGuardTest, WithoutACommunicatorNothingOfNcclsCanChange) {
  EXPECT_THAT(prepare(false, "nccl.ib_timeout"), HasSubstr("trains on the processors"));
  EXPECT_EQ(prepared_, 0);
  EXPECT_EQ(prepare(false, "log.flush_every"), "accepted");
  EXPECT_EQ(prepared_, 1) << "the trainer has its say";
}

TEST_F(NcclGuardTest, NorWhatTheEnvironmentOverrides) {
  settings_.set("nccl.ib_timeout", std::int64_t{22}, "environment");
  EXPECT_THAT(prepare(true, "nccl.ib_timeout"), HasSubstr("environment of footplate run"));
  EXPECT_EQ(prepare(true, "nccl.ib_retries"), "accepted");
}

TEST_F(NcclGuardTest, EverythingElseIsHandedOn) {
  NcclGuard guard(*this, settings_, nullptr);
  EXPECT_EQ(guard.settings_changed(settings_, 3).size(), 1u);
  EXPECT_EQ(*guard.call({}, 3), Json(3));
  EXPECT_FALSE(guard.rejoin({}));
}

TEST_F(NcclGuardTest, LimitsThatAreUpsideDownAreRefused) {
  settings_.set("nccl.min_ctas", std::int64_t{8}, "test");
  settings_.set("nccl.max_ctas", std::int64_t{4}, "test");
  EXPECT_THAT(prepare(true, "nccl.max_ctas"), HasSubstr("nccl.min_ctas = 8 is above nccl.max_ctas = 4"));
  EXPECT_EQ(prepare(true, "eval.every"), "accepted") << "it asks for nothing of NCCL's";
}

TEST_F(NcclGuardTest, CommunicatorsAreMadeAnewAsTheSettingsOfNowSay) {
  NcclGuard guard(*this, settings_, this);
  settings_.set("nccl.max_ctas", std::int64_t{4}, "test");
  EXPECT_EQ(*guard.renew(settings_, 7), 4.0);
  EXPECT_EQ(guard.call({"nccl.rebuild", {}}, 7)->at("seconds"), 0.0) << "the order isn't in force yet";
  guard.settings_changed(settings_, 7);
  EXPECT_EQ(*guard.call({"nccl.rebuild", {}}, 8), (Json{{"step", 8}, {"seconds", 4.0}}));
}

TEST_F(NcclGuardTest, WhereThereAreNoneThereIsNothingToMakeAnew) {
  NcclGuard guard(*this, settings_, nullptr);
  EXPECT_EQ(*guard.renew(settings_, 7), std::nullopt) << "an order of another run, that is replayed";
  EXPECT_FALSE(guard.call({"nccl.rebuild", {}}, 7));
  Order order;
  order.calls = {{"nccl.rebuild", {}}};
  EXPECT_THAT(guard.prepare(order, settings_).error().message, HasSubstr("trains on the processors"));
}

}  // namespace
}  // namespace footplate
