// Checkpoints that several ranks write, on a simulated world: parts of what all have, and shards.
#include <gmock/gmock.h>

#include <cstdlib>
#include <functional>
#include <mutex>

#include "fixture.h"
#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/faulty_disks.h"
#include "runtime/checkpoint/saver.h"
#include "runtime/comm/shares.h"
#include "runtime/schema/schema_table.h"
#include "tests/unit/sim_ranks.h"

namespace footplate {
namespace {

using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kElements = 1000;

/// What one of several ranks has: all parameters, and of one moment three blocks, of another all or nothing.
struct RankState {
  RankState(int rank, int ranks, bool sharded = true)
      : weights(300 * 1024), moment(kElements), other(kElements) {
    fill(0);
    state.add({"model/w",
               DataType::float32,
               {300, 1024},
               Placement::replicated,
               weights.data(),
               weights.size() * sizeof(float)});
    if (!sharded) {
      state.add(
          {"optim/m", DataType::float32, {10, 100}, Placement::replicated, moment.data(), kElements * 4});
      state.add(
          {"optim/v", DataType::float32, {kElements}, Placement::replicated, other.data(), kElements * 4});
      state.add({"optim/empty", DataType::float32, {0, 3}, Placement::replicated, other.data(), 0});
      return;
    }
    for (std::int64_t piece = 0; piece < 3; ++piece) {
      const std::int64_t at_once = kElements / 3 + 1, first = piece * at_once;
      add("optim/m", {10, 100}, moment, cut({first, std::min(first + at_once, kElements)}, rank, ranks));
    }
    // Of the last rank alone, as small tensors are.
    add("optim/v", {kElements}, other, {0, rank + 1 == ranks ? kElements : 0});
    add("optim/empty", {0, 3}, other, {0, 0});
  }

  /// Numbers that follow from their place, plus `more`.
  void fill(float more) {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i) + more;
    for (std::size_t i = 0; i < moment.size(); ++i) moment[i] = 0.5F + static_cast<float>(i) + more;
    for (std::size_t i = 0; i < other.size(); ++i) other[i] = 0.25F + static_cast<float>(i) + more;
  }
  void clear() {
    for (auto* one : {&weights, &moment, &other}) std::fill(one->begin(), one->end(), -1.0F);
  }
  /// Whether all that the table names is what fill(more) makes.
  bool is_filled(float more) const {
    RankState expected(0, 1, false);
    expected.fill(more);
    return std::all_of(state.entries().begin(), state.entries().end(), [&](const StateEntry& entry) {
      const auto first = entry.shard ? static_cast<std::size_t>(entry.shard->first) * sizeof(float) : 0;
      std::vector<std::byte> room;
      const auto all = expected.state.find(entry.name)->on_host(room), mine = entry.on_host(room);
      return std::ranges::equal(mine, all.subspan(first, mine.size()));
    });
  }

  static Stretch cut(const Stretch& whole, int rank, int ranks) {
    const std::int64_t size = whole.end - whole.first;
    return {whole.first + size * rank / ranks, whole.first + size * (rank + 1) / ranks};
  }
  void add(const std::string& name, const std::vector<std::int64_t>& shape, std::vector<float>& values,
           const Stretch& mine) {
    state.add({name,
               DataType::float32,
               {mine.end - mine.first},
               Placement::sharded,
               values.data() + mine.first,
               static_cast<std::size_t>(mine.end - mine.first) * sizeof(float),
               nullptr,
               ShardOf{shape, mine.first}});
  }

  std::vector<float> weights, moment, other;
  StateTable state;
};

/// Once a rank writes its part, it can leave no word of it: something else has the name.
class DiskWithoutNotes final : public PosixDisk {
 public:
  std::error_code create(const std::filesystem::path& path, int& descriptor) override {
    if (path.extension() == ".safetensors")
      std::filesystem::create_directories(std::filesystem::path(path).replace_extension(".written") / "x");
    return PosixDisk::create(path, descriptor);
  }
};

class SharedSaverTest : public testing::Test {
 protected:
  using Body = std::function<void(int rank, CheckpointSaver&)>;

  void on_ranks(int ranks, const Body& body) {
    test::run_ranks(ranks, [&](int rank, Communicator& communicator, Progress&) {
      const auto disk = no_notes_ ? std::make_unique<DiskWithoutNotes>() : open_disk(rank);
      SaverOptions options;
      options.run_directory = run_.path();
      options.note_takes = note_takes_;
      options.run_id = "a1b2";
      options.rank = rank;
      options.world_size = ranks;
      options.ranks = &communicator;
      if (no_memory_) options.memory_left = [] { return 0; };
      options.warn = [this](const std::string& text) {
        const std::scoped_lock lock(mutex_);
        warned_.push_back(text);
      };
      CheckpointSaver saver(std::move(options), *disk);
      body(rank, saver);
    });
  }
  Snapshot snapshot(const StateTable& state, const CheckpointSaver& saver, std::int64_t step = 7) {
    Snapshot made{step, "", state, settings_, Json{{"samples", step}}};
    made.parts = saver.parts(state, settings_);
    return made;
  }
  /// Saved by so many ranks.
  void save(int ranks, float more, std::int64_t step = 7, bool sharded = true) {
    on_ranks(ranks, [&](int rank, CheckpointSaver& saver) {
      RankState mine(rank, ranks, sharded);
      mine.fill(more);
      const auto saved = saver.save(snapshot(mine.state, saver, step));
      ASSERT_TRUE(saved) << saved.error().message;
      if (rank == 0) path_ = saved->path;
    });
  }
  void expect_loaded_by(int ranks, float more, bool sharded = true) {
    on_ranks(ranks, [&](int rank, CheckpointSaver& saver) {
      RankState mine(rank, ranks, sharded);
      mine.clear();
      const auto loaded = saver.load(path_, mine.state);
      ASSERT_TRUE(loaded) << loaded.error().message;
      EXPECT_TRUE(mine.is_filled(more)) << "rank " << rank << " of " << ranks;
    });
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      if (entry.path().extension() == ".safetensors") names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  TemporaryFolder run_;
  Settings settings_ = Settings::defaults(runtime_schema());
  std::string path_;
  bool no_memory_ = false, no_notes_ = false;
  std::chrono::milliseconds note_takes_ = std::chrono::seconds(60);
  std::mutex mutex_;
  std::vector<std::string> warned_;
};

TEST_F(SharedSaverTest, ShardsOfAnyWorldAreLoadedByAnyOther) {
  std::int64_t step = 0;
  for (const int saving : {1, 2, 4, 3}) {
    save(saving, static_cast<float>(saving), ++step);
    EXPECT_EQ(files().size(), static_cast<std::size_t>(saving));
    for (const int loading : {1, 2, 3, 4}) expect_loaded_by(loading, static_cast<float>(saving));
    expect_loaded_by(2, static_cast<float>(saving), /*sharded=*/false);
  }
}

TEST_F(SharedSaverTest, WhatWasWholeIsLoadedAsShards) {
  save(2, 3, 7, /*sharded=*/false);
  EXPECT_THAT(files(), ElementsAre("rank-0.safetensors"));
  expect_loaded_by(3, 3);
}

TEST_F(SharedSaverTest, BesideTrainingEachRankWritesWhatItHadThen) {
  on_ranks(3, [&](int rank, CheckpointSaver& saver) {
    RankState mine(rank, 3);
    Result<Saved> outcome = fail(ErrorKind::failed, "not called");
    const auto begun =
        saver.begin(snapshot(mine.state, saver), [&](const Result<Saved>& saved) { outcome = saved; });
    ASSERT_TRUE(begun) << begun.error().message;
    mine.fill(100);  // the next step
    saver.finish();
    if (rank != 0) return;
    ASSERT_TRUE(outcome) << outcome.error().message;
    path_ = outcome->path;
  });
  expect_loaded_by(2, 0);
}

TEST_F(SharedSaverTest, ARankThatCanLeaveNoWordOfItsPartCostsTheCheckpointAlone) {
  no_notes_ = true;
  note_takes_ = std::chrono::milliseconds(100);
  on_ranks(2, [&](int rank, CheckpointSaver& saver) {
    RankState mine(rank, 2);
    std::optional<Result<Saved>> outcome;
    ASSERT_TRUE(
        saver.begin(snapshot(mine.state, saver), [&](const Result<Saved>& saved) { outcome = saved; }));
    saver.finish_part();
    if (rank == 0) saver.expect_parts();
    saver.finish();
    if (rank != 0) return;
    ASSERT_TRUE(outcome && !*outcome);
    EXPECT_THAT(outcome->error().message, HasSubstr("rank 1 could leave no word of its part in"));
  });
}

TEST_F(SharedSaverTest, WithoutMemoryForCopiesTrainingWaitsAndTheLogSaysSo) {
  no_memory_ = true;
  on_ranks(2, [&](int rank, CheckpointSaver& saver) {
    RankState mine(rank, 2);
    const auto begun = saver.begin(snapshot(mine.state, saver), [](const Result<Saved>&) {
      ADD_FAILURE() << "it is over when begin() returns";
    });
    ASSERT_TRUE(begun && begun->done) << (begun ? "it goes on" : begun.error().message);
    if (rank == 0) path_ = begun->done->path;
  });
  EXPECT_THAT(
      warned_,
      ElementsAre(HasSubstr("training waits for the checkpoint of step 7: ranks 0, 1: a copy of the state")));
  expect_loaded_by(2, 0);
}

TEST_F(SharedSaverTest, APartThatOneRankCantWriteIsEverybodysErrorAndLeavesNothing) {
  ::setenv("FOOTPLATE_FAULT", "save_fail:rank=1", 1);
  on_ranks(3, [&](int rank, CheckpointSaver& saver) {
    RankState mine(rank, 3);
    const auto saved = saver.save(snapshot(mine.state, saver));
    ASSERT_FALSE(saved);
    EXPECT_THAT(saved.error().message, HasSubstr("rank 1: can't save a checkpoint in"));
  });
  ::unsetenv("FOOTPLATE_FAULT");
  EXPECT_TRUE(std::filesystem::is_empty(run_.path() / "checkpoints" / "main"));
}

}  // namespace
}  // namespace footplate
