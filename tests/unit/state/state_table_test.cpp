#include "runtime/state/state_table.h"

#include <gtest/gtest.h>

#include <cstring>
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

/// Memory that only its own copies reach: what it is given is kept upside down.
struct Inverted : StateMemory {
  static void invert(void* to, const void* from, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      static_cast<unsigned char*>(to)[i] =
          static_cast<unsigned char>(~static_cast<const unsigned char*>(from)[i]);
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override { invert(to, from, bytes); }
  void copy_in(void* to, const void* from, std::size_t bytes) override { invert(to, from, bytes); }
};

TEST(StateTable, ReachesADevicesMemoryByItsCopiesAlone) {
  std::vector<float> here{1, 2, 3}, there(3), back(3);
  Inverted memory;
  const StateEntry entry{"model/w", DataType::float32, {3}, Placement::replicated, there.data(), 12, &memory};
  const auto bytes_here = std::as_bytes(std::span(here));
  entry.take(bytes_here.first(4));
  entry.take(bytes_here.subspan(4), 4);
  EXPECT_NE(there, here);
  StateTable table;
  table.add(entry);
  EXPECT_EQ(table.hash(), table_of(here).hash());
  std::vector<std::byte> room;
  const auto bytes = table.entries().front().on_host(room);
  std::memcpy(back.data(), bytes.data(), bytes.size());
  EXPECT_EQ(back, here);
  float last = 0;
  entry.copy_to(std::as_writable_bytes(std::span(&last, 1)), 8);
  EXPECT_EQ(last, 3);
}

TEST(StateTable, FindsByName) {
  std::vector<float> values{1};
  EXPECT_EQ(table_of(values).find("model/w")->data, values.data());
  EXPECT_EQ(table_of(values).find("model/v"), nullptr);
}

TEST(StateTable, OfADeviceThatHasFailedHasNoHash) {
  struct Failed final : StateMemory {
    void copy_out(void*, const void*, std::size_t) override {
      throw std::runtime_error("the device has failed");
    }
    void copy_in(void*, const void*, std::size_t) override {}
  } failed;
  float value = 1;
  StateTable table;
  table.add({.name = "a", .shape = {1}, .data = &value, .bytes = sizeof(value)});
  EXPECT_EQ(table.hash_if_readable().value_or("").size(), 16U);
  table.add({.name = "b", .shape = {1}, .data = &value, .bytes = sizeof(value), .memory = &failed});
  EXPECT_EQ(table.hash_if_readable(), std::nullopt);
}

}  // namespace
}  // namespace footplate
