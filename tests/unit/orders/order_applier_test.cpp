#include "runtime/orders/order_applier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "runtime/schema/schema_table.h"
#include "tests/unit/orders/committed_order.h"

namespace footplate {
namespace {

using testing::agreed;
using ::testing::HasSubstr;

class OrderApplierTest : public ::testing::Test, public Steerable {
 protected:
  OrderApplierTest() { applier_.set_steerable(*this); }

  Result<void> prepare(const Order&, const Settings&) override { return {}; }
  std::vector<Moved> settings_changed(const Settings&, std::int64_t) override { return {}; }
  Result<std::optional<double>> renew(const Settings&, Renewal, std::int64_t) override {
    ++renewals_;
    return renewed_;
  }
  Result<CallResult> call(const Call& call, std::int64_t) override {
    if (call.action == "eval.now") throw std::runtime_error("no data");
    MutexLock lock(state_.mutex);
    if (defers_) state_.running.defer();
    return called_;
  }

  /// The events of it.
  std::vector<GateEvent> apply(const Committed& due) {
    MutexLock lock(state_.mutex);
    applier_.apply(state_, due.step, due);
    return state_.events.drain(SteadyClock::now());
  }
  static std::string last_error(const std::vector<GateEvent>& events) {
    return std::get<CallMoved>(events.back()).error;
  }
  bool stands() {
    MutexLock lock(state_.mutex);
    return state_.recovery.holds();
  }
  bool is_pending(std::uint64_t order) {
    MutexLock lock(state_.mutex);
    return state_.pending.contains(order);
  }
  static Committed for_communicators(std::uint64_t id) {
    Committed order = agreed(id, 3, false);
    order.order.changes = {{"nccl.max_ctas", std::int64_t{8}, {}}};
    return order;
  }

  Schema schema_ = runtime_schema();
  Progress progress_;
  GateState state_{progress_, Settings::defaults(schema_), Json::object(), [] {}};
  OrderApplier applier_{schema_};
  Result<std::optional<double>> renewed_;
  Result<CallResult> called_;
  int renewals_ = 0;
  bool defers_ = false;
};

TEST_F(OrderApplierTest, ACallThatThrowsFails) {
  EXPECT_EQ(last_error(apply(agreed(1, 3, false, {{"eval.now", Json::object()}}))), "no data");
  EXPECT_FALSE(stands());
}

TEST_F(OrderApplierTest, OfADeferredCallNothingIsToldButThatItRuns) {
  defers_ = true;
  const auto events =
      apply(agreed(1, 3, false, {{"ckpt.save", Json::object()}, {"run.pause", Json::object()}}));
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(std::get<CallMoved>(events.at(1)).state, CallState::running);
  EXPECT_EQ(std::get<CallMoved>(events.at(2)).action, "run.pause") << "the next call doesn't wait for it";
  EXPECT_EQ(std::get<CallMoved>(events.at(2)).state, CallState::done);
}

TEST_F(OrderApplierTest, CallsAfterAStopFail) {
  const auto events =
      apply(agreed(1, 3, false, {{"run.stop", Json::object()}, {"ckpt.save", Json::object()}}));
  EXPECT_EQ(std::get<CallMoved>(events.at(1)).state, CallState::done);
  EXPECT_EQ(last_error(events), "the run is stopping");
}

TEST_F(OrderApplierTest, ALossInACallHoldsTrainingWhereItIsSurvived) {
  called_ = fail(ErrorKind::lost, "rank 1 is lost");
  apply(agreed(1, 3, false, {{"ckpt.save", Json::object()}}));
  EXPECT_FALSE(stands());
  applier_.set_recoverable(true);
  EXPECT_EQ(last_error(apply(agreed(2, 3, false, {{"ckpt.save", Json::object()}}))), "rank 1 is lost");
  EXPECT_TRUE(stands());
}

TEST_F(OrderApplierTest, AnOrderThatALossInterruptsIsAppliedLater) {
  applier_.set_recoverable(true);
  renewed_ = fail(ErrorKind::lost, "rank 1 is lost");
  EXPECT_TRUE(apply(for_communicators(1)).empty());
  EXPECT_TRUE(stands());
  EXPECT_TRUE(is_pending(1));
  renewed_ = 0.5;
  const auto events = apply(for_communicators(1));
  EXPECT_EQ(std::get<OrderApplied>(events.at(0)).renewed_s, 0.5);
  MutexLock lock(state_.mutex);
  EXPECT_EQ(state_.applied.count(), 1U);
  EXPECT_EQ(state_.applied.begun(), 1U);
}

TEST_F(OrderApplierTest, FollowsTheRanksThatHaveSeenAnOrderRefused) {
  {
    MutexLock lock(state_.mutex);
    state_.applied.resume(/*calls_over=*/1, /*refused=*/1, "no such communicator");
  }
  const auto events = apply(for_communicators(1));
  EXPECT_EQ(std::get<OrderApplied>(events.at(0)).error->message, "no such communicator");
  EXPECT_EQ(renewals_, 0);
  MutexLock lock(state_.mutex);
  EXPECT_EQ(state_.applied.begun(), 1U) << "after another loss the rest follows this rank";
}

TEST_F(OrderApplierTest, LetsAProcessInForThisStartAlone) {
  applier_.set_recoverable(true);
  applier_.set_start("today");
  EXPECT_THAT(last_error(apply(agreed(1, 3, false, {{"comm.admit", {{"start", "yesterday"}}}}))),
              HasSubstr("another start of this run"));
  EXPECT_FALSE(stands());
  apply(agreed(2, 3, false, {{"comm.admit", {{"start", "today"}}}}));
  EXPECT_TRUE(stands());
}

}  // namespace
}  // namespace footplate
