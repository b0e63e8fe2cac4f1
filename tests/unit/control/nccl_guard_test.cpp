// Orders on nccl.* that would change nothing.
#include "runtime/control/nccl_guard.h"

#include <gmock/gmock.h>

#include "runtime/control/schema_table.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;

class NcclGuardTest : public ::testing::Test, public Steerable {
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

  std::string prepare(bool has_communicator, const char* name) {
    NcclGuard guard(*this, settings_, has_communicator);
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
  NcclGuard guard(*this, settings_, false);
  EXPECT_EQ(guard.settings_changed(settings_, 3).size(), 1u);
  EXPECT_EQ(*guard.call({}, 3), Json(3));
  EXPECT_FALSE(guard.rejoin({}));
}

}  // namespace
}  // namespace footplate
