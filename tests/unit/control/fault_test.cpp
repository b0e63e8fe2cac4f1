#include "runtime/base/fault.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

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

/// The page is the comment of the header: what it has the table takes, and the other way round.
TEST(Faults, AreThoseThatTheHeaderExplains) {
  std::ifstream header(FOOTPLATE_FAULT_PAGE);
  std::set<std::string> explained;
  for (std::string line; std::getline(header, line);) {
    std::istringstream words(line);
    std::string mark, example;
    if (!line.starts_with("///   ") || !(words >> mark >> example)) continue;
    EXPECT_EQ(verdict(example), "accepted");
    explained.insert(example.substr(0, example.find(':')));
  }
  std::set<std::string> known;
  const std::string all = verdict("?");
  std::istringstream names(all.substr(all.find("there is: ") + 10));
  for (std::string name; names >> name;) known.insert(name.substr(0, name.find(',')));
  EXPECT_GT(known.size(), 10U) << all;
  EXPECT_EQ(explained, known);
}

TEST(Faults, AreNoneWhereTheyAreRefused) {
  setenv("FOOTPLATE_FAULT", "start_hang:rnak=1", 1);
  EXPECT_FALSE(fault("start_hang", 0)) << "it would hang before it could say so";
  setenv("FOOTPLATE_FAULT", "start_hang:rank=1", 1);
  EXPECT_TRUE(fault("start_hang", 1));
  unsetenv("FOOTPLATE_FAULT");
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
