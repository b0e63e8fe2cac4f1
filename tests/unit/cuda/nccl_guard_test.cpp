// Orders on nccl.* that would change nothing.
#include "runtime/cuda/nccl_guard.h"

#include <gmock/gmock.h>

#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;

class NcclGuardTest : public ::testing::Test, public NcclSteering {
 protected:
  Result<double> renew(const Settings& after) override {
    return static_cast<double>(after.integer("nccl.max_ctas"));
  }
  Result<void> check(const Settings& after) const override {
    if (after.string("nccl.rules") == "ring") return fail(ErrorKind::refused, "no rings here");
    return {};
  }
  bool tune(const Settings& now) override {
    ++tuned_;
    return std::exchange(rules_, now.string("nccl.rules")) != rules_;
  }
  Result<std::string> compare() override {
    ++compared_;
    return said_;
  }
  void leave_rules() override { rules_.clear(); }
  Result<void> take_rules(const Settings& now) override {
    ++taken_;
    tune(now);
    return {};
  }
  void measure(std::int64_t first, std::int64_t steps) override { measured_ = {first, steps}; }
  void at_step(std::int64_t step) override { looked_at_ = step; }
  NcclMeasurement measured() const override { return {}; }

  NcclGuard guard(bool has_communicator, bool joins = false) {
    return NcclGuard(
        settings_, has_communicator ? this : nullptr,
        [this](EventData event) { published_.push_back(std::move(event)); }, joins);
  }

  std::string prepare(bool has_communicator, const char* name) {
    NcclGuard guard = this->guard(has_communicator);
    Order order;
    order.changes = {{"log.every", std::int64_t{5}, std::nullopt}, {name, std::int64_t{20}, std::nullopt}};
    const auto result = guard.prepare(order, settings_);
    return result ? "accepted" : result.error().message;
  }

  const Schema schema_ = runtime_schema();
  Settings settings_ = Settings::defaults(schema_);
  std::string rules_;
  std::string said_;
  int compared_ = 0;
  int taken_ = 0;
  int tuned_ = 0;
  std::pair<std::int64_t, std::int64_t> measured_ = {-1, -1};
  std::int64_t looked_at_ = -1;
  std::vector<EventData> published_;
};

TEST_F(NcclGuardTest, WithoutACommunicatorNothingOfNcclsCanChange) {
  EXPECT_THAT(prepare(false, "nccl.ib_timeout"), HasSubstr("trains on the processors"));
  EXPECT_EQ(prepare(false, "log.flush_every"), "accepted");
}

TEST_F(NcclGuardTest, NorWhatTheEnvironmentOverrides) {
  settings_.set("nccl.ib_timeout", std::int64_t{22}, "environment");
  EXPECT_THAT(prepare(true, "nccl.ib_timeout"), HasSubstr("environment of footplate run"));
  settings_.set("nccl.ib_timeout", std::int64_t{22}, "environment (/etc/nccl.conf)");
  EXPECT_THAT(prepare(true, "nccl.ib_timeout"), HasSubstr("at every start (environment (/etc/nccl.conf))"));
  EXPECT_EQ(prepare(true, "nccl.ib_retries"), "accepted");
}

TEST_F(NcclGuardTest, CommunicatorsAreMadeAnewAsTheSettingsOfNowSay) {
  NcclGuard guard = this->guard(true);
  settings_.set("nccl.max_ctas", std::int64_t{4}, "test");
  EXPECT_EQ(*guard.renew(settings_, {.communicators = true}, 7), 4.0);
  EXPECT_EQ(*guard.renew(settings_, {.state = true}, 7), std::nullopt);
  EXPECT_EQ(std::get<CommunicatorsRenewed>(*guard.call({"nccl.rebuild", {}}, 7)).seconds, 0.0)
      << "the order isn't in force yet";
  guard.settings_changed(settings_, 7);
  EXPECT_EQ(to_json(*guard.call({"nccl.rebuild", {}}, 8)), (Json{{"step", 8}, {"seconds", 4.0}}));
}

TEST_F(NcclGuardTest, WhereThereAreNoneThereIsNothingToMakeAnew) {
  NcclGuard guard = this->guard(false);
  EXPECT_EQ(*guard.renew(settings_, {.communicators = true}, 7), std::nullopt)
      << "an order of another run, that is replayed";
  EXPECT_FALSE(guard.call({"nccl.rebuild", {}}, 7));
  Order order;
  order.calls = {{"nccl.rebuild", {}}};
  EXPECT_THAT(guard.prepare(order, settings_).error().message, HasSubstr("trains on the processors"));
}

TEST_F(NcclGuardTest, RulesThatCantBeAreRefusedBeforeAnythingChanges) {
  settings_.set("nccl.rules", std::string("ring"), "test");
  EXPECT_EQ(prepare(true, "nccl.ib_retries"), "no rings here");
  EXPECT_EQ(prepare(true, "eval.every"), "accepted") << "it asks for nothing of NCCL's";
}

TEST_F(NcclGuardTest, TunersAreComparedAfterTheFirstStepByNewRulesAndNowAndThen) {
  settings_.set("guard.check_every", std::int64_t{10}, "test");
  NcclGuard guard = this->guard(true);
  for (std::int64_t step = 1; step < 10; ++step) EXPECT_TRUE(guard.before_step(step));
  EXPECT_EQ(compared_, 0);
  EXPECT_TRUE(guard.before_step(10));
  EXPECT_EQ(compared_, 1);
  settings_.set("nccl.rules", std::string("tree"), "test");
  guard.settings_changed(settings_, 13);
  EXPECT_TRUE(guard.before_step(13));
  EXPECT_EQ(compared_, 1) << "nothing was done by them yet";
  said_ = "rank 1 tunes NCCL otherwise";
  EXPECT_TRUE(guard.before_step(14));
  EXPECT_EQ(compared_, 2);
  ASSERT_EQ(published_.size(), 1u);
  EXPECT_EQ(std::get<Warning>(published_[0]).text, said_);
  settings_.set("log.every", std::int64_t{3}, "test");
  guard.settings_changed(settings_, 15);
  EXPECT_TRUE(guard.before_step(16));
  EXPECT_EQ(compared_, 2);
  settings_.set("nccl.rules", std::string("..5 tree"), "test");
  guard.settings_changed(settings_, 17);
  EXPECT_EQ(taken_, 0);
  guard.stand(/*whole=*/true);
  EXPECT_EQ(rules_, "") << "others may have other rules";
  EXPECT_TRUE(guard.rejoin({.step = 17}));
  EXPECT_EQ(rules_, "..5 tree");
  EXPECT_EQ(taken_, 1);
  EXPECT_TRUE(guard.before_step(17));
  EXPECT_EQ(compared_, 2);
  EXPECT_TRUE(guard.before_step(18));
  EXPECT_EQ(compared_, 3) << "and so does a rank that has heard of no order: the same on all";
  tuned_ = 0;
  NcclGuard joined = this->guard(true, /*joins=*/true);
  EXPECT_EQ(tuned_, 0);
  EXPECT_TRUE(joined.rejoin({.step = 20}));
  EXPECT_EQ(tuned_, 1);
  EXPECT_TRUE(joined.before_step(20));
  EXPECT_TRUE(joined.before_step(21));
  EXPECT_EQ(compared_, 4);
}

TEST_F(NcclGuardTest, AMeasurementIsToldAStepAfterItsEnd) {
  NcclGuard guard = this->guard(true);
  EXPECT_THAT(guard.call({"nccl.profile", {}}, 4).error().message,
              HasSubstr("nccl.measure{ steps = 50 } does"));
  EXPECT_EQ(to_json(*guard.call({"nccl.measure", {{"steps", 3}}}, 5)),
            (Json{{"first", 5}, {"last", 7}, {"steps", 3}}));
  EXPECT_EQ(measured_, (std::pair<std::int64_t, std::int64_t>(5, 3)));
  for (std::int64_t step = 5; step <= 8; ++step) {
    EXPECT_TRUE(guard.before_step(step));
    EXPECT_EQ(looked_at_, step);
  }
  EXPECT_TRUE(published_.empty());
  EXPECT_THAT(guard.call({"nccl.profile", {}}, 8).error().message, HasSubstr("measuring until step 8"));
  EXPECT_TRUE(guard.before_step(9));
  EXPECT_TRUE(guard.before_step(10));
  ASSERT_EQ(published_.size(), 1u);
  EXPECT_EQ(std::get<NcclMeasurement>(published_[0]).steps, 3);
  EXPECT_GT(std::get<NcclMeasurement>(published_[0]).step_ms, 0);
  EXPECT_EQ(std::get<NcclMeasurement>(*guard.call({"nccl.profile", {}}, 11)).step, 8);
}

TEST_F(NcclGuardTest, AMeasurementBeginsAnewAfterALoss) {
  NcclGuard guard = this->guard(true);
  EXPECT_TRUE(guard.call({"nccl.measure", {{"steps", 3}}}, 5));
  EXPECT_TRUE(guard.before_step(5));
  EXPECT_TRUE(guard.before_step(6));
  guard.stand(/*whole=*/true);
  EXPECT_TRUE(guard.rejoin({.step = 6}));
  EXPECT_EQ(measured_, (std::pair<std::int64_t, std::int64_t>(6, 3)));
  for (std::int64_t step = 6; step <= 10; ++step) EXPECT_TRUE(guard.before_step(step));
  ASSERT_EQ(published_.size(), 1u);
  EXPECT_EQ(std::get<NcclMeasurement>(published_[0]).step, 9);
  EXPECT_TRUE(guard.rejoin({.step = 11}));
  EXPECT_EQ(measured_.first, 6) << "what was told isn't measured again";
}

}  // namespace
}  // namespace footplate
