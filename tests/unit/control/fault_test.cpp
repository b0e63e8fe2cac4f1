#include "runtime/control/fault.h"

#include <gtest/gtest.h>

namespace footplate {
namespace {

std::string verdict(std::string_view faults) {
  const auto good = check_faults(faults);
  return good ? "accepted" : good.error().message;
}

TEST(Faults, AreThoseOfTheTable) {
  EXPECT_EQ(verdict(""), "accepted");
  EXPECT_EQ(verdict("eval_throw"), "accepted");
  EXPECT_EQ(verdict("eval_throw:rank=1:above=8,nan_grad:step=7:times=3,start_hang:rank=1:mpi=1"), "accepted");
  EXPECT_TRUE(
      verdict("save_fail,eval_thraw")
          .starts_with("FOOTPLATE_FAULT: no fault 'eval_thraw'; did you mean 'eval_throw'?; there is: "));
  EXPECT_EQ(verdict("step_throw:stp=5"),
            "FOOTPLATE_FAULT: no parameter of step_throw 'stp'; did you mean 'step'?; there is: rank, step");
  EXPECT_EQ(verdict("step_throw:step=5s"), "FOOTPLATE_FAULT: step_throw:step needs an integer, got '5s'");
  EXPECT_EQ(verdict("step_throw:step"), "FOOTPLATE_FAULT: step_throw:step needs an integer, got ''");
}

TEST(Faults, AreFoundByKindAndRank) {
  const char* faults = "refuse:rank=1:order=3,eval_stall:ms=900";
  EXPECT_FALSE(find_fault(faults, "refuse", 0));
  ASSERT_TRUE(find_fault(faults, "refuse", 1));
  EXPECT_TRUE(find_fault(faults, "refuse", 1)->matches("order", 3));
  EXPECT_EQ(find_fault(faults, "eval_stall", 2)->get("ms"), 900);
}

}  // namespace
}  // namespace footplate
