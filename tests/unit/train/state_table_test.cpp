#include "runtime/train/state_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace footplate {
namespace {

StateTable table_of(std::vector<float>& values, Placement placement = Placement::replicated) {
  StateTable table;
  table.add({"model/w",
             DataType::float32,
             {static_cast<std::int64_t>(values.size())},
             placement,
             values.data(),
             values.size() * sizeof(float)});
  return table;
}

TEST(StateTable, EqualContentsHashEqualAndOneBitMakesADifference) {
  std::vector<float> here{1, 2, 3}, there{1, 2, 3};
  EXPECT_EQ(table_of(here).hash(), table_of(there).hash());
  reinterpret_cast<unsigned char&>(there[1]) ^= 1;
  EXPECT_NE(table_of(here).hash(), table_of(there).hash());
}

TEST(StateTable, WhatEachRankHasOfItsOwnIsLeftOutOfTheHash) {
  std::vector<float> here{1}, there{2};
  EXPECT_EQ(table_of(here, Placement::local).hash(), table_of(there, Placement::local).hash());
}

TEST(StateTable, FindsByName) {
  std::vector<float> values{1};
  EXPECT_EQ(table_of(values).find("model/w")->data, values.data());
  EXPECT_EQ(table_of(values).find("model/v"), nullptr);
}

}  // namespace
}  // namespace footplate
