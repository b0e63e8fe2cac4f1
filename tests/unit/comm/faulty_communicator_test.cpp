#include "runtime/comm/faulty_communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "runtime/comm/sim/sim_scheduler.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;

class Done final : public Work {
 public:
  bool done() const override { return true; }
  Result<void> wait(Clock::time_point /*deadline*/) override { return {}; }
};

/// Notes what it is asked for.
class Noting final : public Communicator {
 public:
  int rank() const override { return 1; }
  int world_size() const override { return 2; }
  void set_chunk_elements(std::int64_t /*elements*/) override {}
  std::unique_ptr<Work> all_reduce(Buffer buffer, ReduceOp /*op*/, const char* name) override {
    return note(name + std::string(" ") + std::to_string(buffer.elements));
  }
  std::unique_ptr<Work> broadcast(Buffer, int, const char* name) override { return note(name); }
  std::unique_ptr<Work> all_gather(Buffer, Buffer, const char* name) override { return note(name); }
  std::unique_ptr<Work> barrier(const char* name) override { return note(name); }
  std::unique_ptr<Work> reduce_scatter(Buffer buffer, ReduceOp /*op*/, const char* name) override {
    return note(name + std::string(" scattered ") + std::to_string(buffer.elements));
  }
  std::unique_ptr<Work> all_gather_shares(Buffer, const char* name) override { return note(name); }
  std::unique_ptr<Work> pass_shares(Buffer, int, const char* name) override { return note(name); }

  std::vector<std::string> calls;

 private:
  std::unique_ptr<Work> note(std::string call) {
    calls.push_back(std::move(call));
    return std::make_unique<Done>();
  }
};

class FaultyCommunicatorTest : public ::testing::Test {
 protected:
  ~FaultyCommunicatorTest() override { ::unsetenv("FOOTPLATE_FAULT"); }

  FaultyCommunicator& with(const char* faults) {
    ::setenv("FOOTPLATE_FAULT", faults, 1);
    return faulty_.emplace(inner_, progress_, /*rank=*/1);
  }
  /// How long it takes to launch a reduction.
  SteadyClock::duration reduce(std::int64_t elements, const char* name = "gradients") {
    const auto start = SteadyClock::now();
    faulty_->all_reduce({nullptr, elements, DataType::float32}, ReduceOp::sum, name);
    return SteadyClock::now() - start;
  }

  SimScheduler scheduler_{1};  ///< its time passes in sleeps alone
  Noting inner_;
  Progress progress_;
  std::optional<FaultyCommunicator> faulty_;
};

TEST_F(FaultyCommunicatorTest, WithoutAFaultOfThisRankAllGoesThrough) {
  FaultyCommunicator& faulty = with("odd_reduce:rank=0,reduce_late:rank=0:ms=60000");
  EXPECT_EQ(faulty.rank(), 1);
  EXPECT_EQ(faulty.world_size(), 2);
  faulty.begin_step(0);
  reduce(5);
  faulty.broadcast({}, 0, "broadcast");
  faulty.all_gather({}, {}, "gather");
  faulty.barrier("barrier");
  faulty.reduce_scatter({nullptr, 6, DataType::float32}, ReduceOp::sum, "gradients");
  faulty.all_gather_shares({}, "parameters");
  faulty.pass_shares({}, 1, "copies");
  EXPECT_THAT(inner_.calls, ElementsAre("gradients 5", "broadcast", "gather", "barrier",
                                        "gradients scattered 6", "parameters", "copies"));
}

TEST_F(FaultyCommunicatorTest, AnOddReductionComesBeforeTheFirstOfItsStep) {
  FaultyCommunicator& faulty = with("odd_reduce:rank=1:step=3");
  for (const std::int64_t step : {2, 3, 4}) {
    faulty.begin_step(step);
    reduce(5);
    reduce(7);
  }
  EXPECT_THAT(inner_.calls, ElementsAre("gradients 5", "gradients 7", "gradients 5", "gradients 5",
                                        "gradients 7", "gradients 5", "gradients 7"));
}

TEST_F(FaultyCommunicatorTest, GradientsThatAreScatteredHaveTheSameFaults) {
  FaultyCommunicator& faulty = with("odd_reduce:rank=1:step=3");
  faulty.begin_step(3);
  for (const std::int64_t elements : {6, 8})
    faulty.reduce_scatter({nullptr, elements, DataType::float32}, ReduceOp::sum, "gradients");
  EXPECT_THAT(inner_.calls, ElementsAre("gradients 6", "gradients scattered 6", "gradients scattered 8"));
}

TEST_F(FaultyCommunicatorTest, ALateRankIsLateEachTimeTheStepIsDone) {
  FaultyCommunicator& faulty = with("reduce_late:step=3:ms=40");
  progress_.enter(Phase::reduce);
  faulty.begin_step(3);
  EXPECT_LT(reduce(1, "state hashes"), milliseconds(40)) << "other collectives aren't";
  EXPECT_GE(reduce(1), milliseconds(40));
  EXPECT_EQ(progress_.phase(), Phase::reduce);
  EXPECT_LT(reduce(1), milliseconds(40)) << "once";
  faulty.begin_step(3);
  EXPECT_GE(reduce(1), milliseconds(40));
  faulty.begin_step(4);
  EXPECT_LT(reduce(1), milliseconds(40));
}

TEST_F(FaultyCommunicatorTest, AnAbsentRankComesLateToEvaluationsOnly) {
  with("eval_absent:ms=40").begin_step(0);
  EXPECT_LT(reduce(1), milliseconds(40));
  EXPECT_GE(reduce(1, "eval sums"), milliseconds(40));
}

}  // namespace
}  // namespace footplate
