#include "runtime/orders/state_hashes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace footplate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(StateHashesTest, NamesTheMinorityAndBothWhereThereIsNone) {
  StateHashes three(3);
  EXPECT_FALSE(three.add(0, {10, 1}) || three.add(1, {10, 2}));
  EXPECT_THAT(three.add(2, {10, 1})->odd, ElementsAre(1));
  StateHashes two(2);
  two.add(0, {10, 1});
  EXPECT_THAT(two.add(1, {10, 2})->odd, ElementsAre(0, 1));
  two.add(0, {20, 3});
  EXPECT_FALSE(two.add(1, {20, 3}));
}

TEST(StateHashesTest, NamesTheTensorsThatDiffer) {
  const StateHash sound{10, 1, 4, {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 4}, {"e", 5}, {"f", 6}}};
  StateHash odd = sound;
  odd.hash = 2;
  odd.tensors[3].hash = 0;
  StateHashes three(3);
  three.add(2, odd);
  three.add(0, sound);
  const auto one = three.add(1, sound);
  EXPECT_THAT(one->tensors, ElementsAre("d"));
  EXPECT_THAT(
      one->text,
      HasSubstr(
          "after step 10 rank 2 differs from the others in d: its parameters or optimizer state have "
          "drifted; they were the "
          "same after step 4; resume from a checkpoint of that step or before, and suspect its memory"));

  for (TensorHash& tensor : odd.tensors) tensor.hash = 0;
  StateHashes two(2);
  two.add(1, odd);
  const auto all = two.add(0, sound);
  EXPECT_THAT(all->tensors, ElementsAre("a", "b", "c", "d", "e", "f"));
  EXPECT_THAT(
      all->text,
      HasSubstr("differ (ranks 0, 1) in a, b, c and 3 more tensors; they were the same after step 4"));
}

}  // namespace
}  // namespace footplate
