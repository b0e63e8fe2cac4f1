// The state of a rank, hashed slice by slice.
#include "runtime/state/state_sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace footplate {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

/// Tensors of bytes by name, and their table.
class State {
 public:
  State& add(const std::string& name, std::size_t bytes, Placement placement = Placement::replicated) {
    std::vector<unsigned char>& room = values_[name];
    room.resize(bytes);
    std::mt19937 random(static_cast<unsigned>(values_.size()));
    std::generate(room.begin(), room.end(), [&] { return static_cast<unsigned char>(random()); });
    StateEntry entry;
    entry.name = name;
    entry.shape = {static_cast<std::int64_t>(bytes / sizeof(float))};
    entry.placement = placement;
    entry.data = room.data();
    entry.bytes = room.size();
    if (placement == Placement::sharded) entry.shard = ShardOf{entry.shape, 0};
    table_.add(entry);
    return *this;
  }

  const StateTable& table() const { return table_; }
  unsigned char& at(const std::string& name, std::size_t byte) { return values_[name][byte]; }

 private:
  std::map<std::string, std::vector<unsigned char>> values_;
  StateTable table_;
};

std::optional<std::uint64_t> hash_at(StateSweep& sweep, std::int64_t step, std::int64_t period) {
  sweep.begin(step, period);
  return sweep.finish();
}

/// At which of the first `period` steps two states aren't the same, and in which tensors.
std::map<std::int64_t, std::vector<std::string>> differences(const State& one, const State& other,
                                                             std::int64_t period) {
  StateSweep here(one.table()), there(other.table());
  std::map<std::int64_t, std::vector<std::string>> found;
  for (std::int64_t step = 0; step < period; ++step) {
    if (hash_at(here, step, period) == hash_at(there, step, period)) continue;
    const auto mine = here.report().tensors, theirs = there.report().tensors;
    for (std::size_t i = 0; i < mine.size(); ++i)
      if (mine[i] != theirs[i]) found[step].push_back(mine[i].name);
  }
  return found;
}

State model() {
  State state;
  state.add("model/embedding", 3 << 20).add("model/bias", 12).add("model/weight", 1 << 20);
  state.add("optim/step", 4).add("optim/exp_avg/weight", (1 << 20) + 20);
  return state;
}

TEST(StateSweep, APeriodFindsAFlippedBitAnywhereOnceAndNamesItsTensor) {
  constexpr std::int64_t kPeriod = 11;
  constexpr std::size_t kFlips = 10;  // in each tensor
  const State sound = model();
  State odd = model();
  std::mt19937 random(7);
  for (const StateEntry& entry : sound.table().entries())
    for (std::size_t flip = 0; flip < kFlips; ++flip) {
      const std::size_t byte = flip < 2 ? flip * (entry.bytes - 1) : random() % entry.bytes;
      const auto bit = static_cast<unsigned char>(1U << (random() % 8));
      odd.at(entry.name, byte) ^= bit;
      const auto found = differences(sound, odd, kPeriod);
      ASSERT_THAT(found, SizeIs(1)) << "byte " << byte << " of " << entry.name;
      EXPECT_THAT(found.begin()->second, ElementsAre(entry.name));
      odd.at(entry.name, byte) ^= bit;
    }
}

TEST(StateSweep, TensorsThatChangePlacesDiffer) {
  State one, other;
  one.add("a", 64).add("b", 64);
  other.add("a", 64).add("b", 64);
  for (std::size_t i = 0; i < 64; ++i) std::swap(other.at("a", i), other.at("b", i));
  EXPECT_THAT(differences(one, other, 1), SizeIs(1));
}

TEST(StateSweep, ASmallStateIsDueOnceInAPeriodALargeOneAtEachStep) {
  State small;
  small.add("a", 64);
  StateSweep sweep(small.table());
  EXPECT_TRUE(hash_at(sweep, 200, 100));
  EXPECT_FALSE(hash_at(sweep, 201, 100));
  EXPECT_FALSE(hash_at(sweep, 299, 100));
  EXPECT_FALSE(hash_at(sweep, 300, 0));
  const State large = model();
  StateSweep often(large.table());
  for (int step = 0; step < 4; ++step) EXPECT_TRUE(hash_at(often, step, 4)) << step;
}

TEST(StateSweep, TellsWhenASliceWasTheSameLast) {
  const State state = model();
  using Steps = std::vector<std::pair<std::int64_t, std::int64_t>>;  // and periods
  const auto agreed = [&](const Steps& steps) {
    StateSweep sweep(state.table());
    for (const auto& [step, period] : steps) hash_at(sweep, step, period);
    return sweep.report().agreed;
  };
  EXPECT_EQ(agreed({{40, 4}}), 40) << "as all states are at the start";
  EXPECT_EQ(agreed({{40, 4}, {43, 4}}), 40);
  EXPECT_EQ(agreed({{40, 4}, {44, 4}}), 40);
  EXPECT_EQ(agreed({{40, 4}, {49, 4}}), 45);
  EXPECT_EQ(agreed({{40, 4}, {49, 4}, {50, 2}}), 46) << "by the period before";
  EXPECT_EQ(agreed({{40, 4}, {49, 4}, {50, 2}, {51, 2}}), 46);
  EXPECT_EQ(agreed({{40, 4}, {49, 4}, {50, 2}, {52, 2}}), 50);
  EXPECT_EQ(agreed({{40, 4}, {49, 4}, {50, 0}, {70, 2}}), 46) << "nobody has compared since";

  StateSweep sweep(state.table());
  hash_at(sweep, 40, 4);
  hash_at(sweep, 49, 4);
  EXPECT_EQ(sweep.report().agreed, 45);
  hash_at(sweep, 53, 4);
  EXPECT_EQ(sweep.report().agreed, 45) << "as before the first difference";
  sweep.know_equal(53);
  hash_at(sweep, 54, 4);
  EXPECT_EQ(sweep.report().agreed, 53);
}

TEST(StateSweep, WhatForwardWritesIsHashedBeforeIt) {
  State state;
  state.add("state/running_mean", 64);
  StateTable table;
  StateEntry entry = state.table().entries().front();
  entry.forward_writes = true;
  table.add(entry);
  StateSweep sweep(table);
  const auto before = hash_at(sweep, 0, 1);
  sweep.begin(0, 1);
  state.at("state/running_mean", 5) ^= 1U;
  EXPECT_EQ(sweep.finish(), before);
  EXPECT_NE(hash_at(sweep, 0, 1), before);
}

TEST(StateSweep, ADevicesMemoryHashesAsTheHosts) {
  struct Copies final : StateMemory {
    void copy_out(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
    void copy_in(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  } memory;
  const State state = model();
  StateTable on_device;
  for (StateEntry entry : state.table().entries()) {
    entry.memory = &memory;
    on_device.add(std::move(entry));
  }
  StateSweep here(state.table()), there(on_device);
  EXPECT_EQ(hash_at(here, 3, 5), hash_at(there, 3, 5));
}

TEST(StateSweep, ADeviceThatHashesIsAskedAtTheBeginningAndAnswersAtTheEnd) {
  struct Hashing final : StateMemory {
    void copy_out(void*, const void*, std::size_t) override { ADD_FAILURE() << "it hashes by itself"; }
    void copy_in(void*, const void*, std::size_t) override {}
    std::size_t most_hashed() const override { return 1 << 20; }
    std::unique_ptr<PendingHashes> begin_hashes(
        std::span<const std::span<const std::byte>> stretches) override {
      struct Known final : PendingHashes {
        std::vector<std::uint64_t> take() override { return hashes; }
        std::vector<std::uint64_t> hashes;
      };
      auto known = std::make_unique<Known>();
      for (const auto stretch : stretches) {
        EXPECT_LE(stretch.size(), most_hashed());
        EXPECT_EQ(stretch.size() % 4, 0U);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(stretch.data()) % 4, 0U) << "a device reads words";
        std::uint64_t sum = 0;
        for (const std::byte byte : stretch) sum = sum * 31 + static_cast<std::uint64_t>(byte);
        known->hashes.push_back(sum);
      }
      return known;
    }
  } memory;
  State state;
  state.add("state/flag", 1).add("state/flags", 7);  // which the host hashes
  state.add("model/embedding", 3 << 20).add("model/bias", 12).add("model/weight", 1 << 20);
  state.add("optim/step", 4).add("optim/exp_avg/weight", (1 << 20) + 20);
  StateTable on_device;
  for (StateEntry entry : state.table().entries()) {
    if (entry.bytes % 4 == 0) entry.memory = &memory;
    on_device.add(std::move(entry));
  }
  StateSweep sweep(on_device);
  const auto before = hash_at(sweep, 0, 1);
  EXPECT_THAT(sweep.report().tensors, SizeIs(7));
  for (int step = 0; step < 11; ++step) hash_at(sweep, step, 11);
  EXPECT_EQ(hash_at(sweep, 0, 1), before);
  sweep.begin(0, 1);
  state.at("model/weight", 1000) ^= 1U;
  EXPECT_EQ(sweep.finish(), before);
  const auto sound = sweep.report().tensors;
  EXPECT_NE(hash_at(sweep, 0, 1), before);
  const auto odd = sweep.report().tensors;
  for (std::size_t i = 0; i < odd.size(); ++i)
    EXPECT_EQ(odd[i] == sound[i], odd[i].name != "model/weight") << odd[i].name;
}

TEST(StateSweep, WhatARankHasOfItsOwnIsLeftOut) {
  State one, other;
  for (State* state : {&one, &other})
    state->add("model/a", 64).add("rng", 64, Placement::local).add("optim/a", 64, Placement::sharded);
  other.at("rng", 3) ^= 1U;
  other.at("optim/a", 3) ^= 1U;
  EXPECT_THAT(differences(one, other, 1), SizeIs(0));
}

}  // namespace
}  // namespace footplate
