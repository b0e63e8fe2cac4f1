#include "runtime/checkpoint/saver.h"

#include <thread>

#include "fixture.h"
#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/faulty_disks.h"
#include "runtime/checkpoint/resume.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using test::TemporaryFolder;

struct Model {
  std::vector<float> weights{1, 2, 3, 4, 5, 6};
  std::vector<double> moments{0.25};
  std::vector<std::int64_t> step{9};
  StateTable state;

  explicit Model(Placement placement = Placement::replicated, StateMemory* memory = nullptr) {
    state.add({"model/w", DataType::float32, {2, 3}, placement, weights.data(), 24, memory});
    state.add({"optim/m", DataType::float64, {1}, Placement::replicated, moments.data(), 8});
    state.add({"optim/step", DataType::int64, {}, Placement::replicated, step.data(), 8});
  }
};

class SaverTest : public testing::Test {
 protected:
  CheckpointSaver saver(int rank) { return saver(rank, run_.path()); }
  CheckpointSaver saver(int rank, const std::filesystem::path& run_directory) {
    SaverOptions options;
    options.run_directory = run_directory;
    options.run_id = "a1b2";
    options.start = 3;
    options.rank = rank;
    options.world_size = 2;
    options.branch = branch_;
    options.origin = origin_;
    options.last_order = [this] { return order_; };
    options.warn = warn_;
    if (no_memory_) options.memory_left = [] { return 0; };
    options.metrics = [] { return Json{{"eval/loss", 1.5}}; };
    return {std::move(options), *disk_};
  }
  Snapshot snapshot(const Model& model, std::int64_t step, const std::string& tag = "") {
    return {step, tag, model.state, settings_, Json{{"samples", step * 32}}};
  }

  TemporaryFolder run_;
  std::unique_ptr<Disk> disk_ = open_disk(0);
  std::uint64_t order_ = 3;
  bool no_memory_ = false;
  std::function<void(const std::string&)> warn_;
  std::string branch_ = "main";
  std::string origin_;
  Settings settings_ = Settings::defaults(runtime_schema());
};

/// A device's memory, of which the host has a copy that is twice as large in number.
struct Doubled : StateMemory {
  static void scale(void* to, const void* from, std::size_t bytes, float factor) {
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i)
      static_cast<float*>(to)[i] = factor * static_cast<const float*>(from)[i];
  }
  void copy_out(void* to, const void* from, std::size_t bytes) override { scale(to, from, bytes, 2); }
  void copy_in(void* to, const void* from, std::size_t bytes) override { scale(to, from, bytes, 0.5); }
};

TEST_F(SaverTest, WhatADeviceHasIsSavedAndLoadedByItsCopies) {
  Doubled memory;
  const Model model(Placement::replicated, &memory);
  const auto saved = saver(0).save(snapshot(model, 500));
  ASSERT_TRUE(saved) << saved.error().message;
  Model other;
  ASSERT_TRUE(saver(0).load(saved->path, other.state));
  EXPECT_EQ(other.weights, (std::vector<float>{2, 4, 6, 8, 10, 12}));
  Model back(Placement::replicated, &memory);
  std::fill(back.weights.begin(), back.weights.end(), 0.0F);
  ASSERT_TRUE(saver(0).load(saved->path, back.state));
  EXPECT_EQ(back.weights, model.weights);
}

TEST_F(SaverTest, EveryRankLoadsWhatRank0Saved) {
  CheckpointSaver rank0 = saver(0);
  CheckpointSaver rank1 = saver(1);
  const Model model;
  const auto other = rank1.save(snapshot(model, 500));
  ASSERT_TRUE(other);
  EXPECT_EQ(other->bytes, 0);
  const auto saved = rank0.save(snapshot(model, 500));
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_EQ(saved->path, other->path);
  EXPECT_GT(saved->bytes, 0);

  for (CheckpointSaver* each : {&rank0, &rank1}) {
    Model fresh;
    fresh.weights.assign(6, 0);
    fresh.moments[0] = 0;
    fresh.step[0] = 0;
    const auto progress = each->load(saved->path, fresh.state);
    ASSERT_TRUE(progress) << progress.error().message;
    EXPECT_EQ((*progress)["samples"], 16000);
    EXPECT_EQ(fresh.weights, model.weights);
    EXPECT_EQ(fresh.moments, model.moments);
    EXPECT_EQ(fresh.step, model.step);
  }
  const auto manifest = read_manifest(saved->path);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->journal, 3u);
  EXPECT_EQ(manifest->run, "a1b2");
  EXPECT_EQ(manifest->start, 3);
  EXPECT_EQ(manifest->metrics["eval/loss"], 1.5);
  EXPECT_EQ(manifest->settings["ckpt.keep"]["value"], 3);
}

TEST_F(SaverTest, RefusesAnotherModelAndTouchesNothing) {
  CheckpointSaver rank0 = saver(0);
  const auto saved = rank0.save(snapshot(Model(), 1));
  ASSERT_TRUE(saved);
  std::vector<float> weights{7, 7};
  StateTable other;
  other.add({"model/w", DataType::float32, {2}, Placement::replicated, weights.data(), 8});
  const auto loaded = rank0.load(saved->path, other);
  ASSERT_FALSE(loaded);
  EXPECT_NE(loaded.error().message.find("model/w (here F32[2, 3], the model has F32[2])"), std::string::npos);
  EXPECT_NE(loaded.error().message.find("unknown here: optim/m and 1 more"), std::string::npos);
  EXPECT_EQ(weights, (std::vector<float>{7, 7}));
}

TEST_F(SaverTest, KeepComesFromTheSettings) {
  CheckpointSaver rank0 = saver(0);
  settings_.set("ckpt.keep", std::int64_t{2}, "test");
  for (const std::int64_t step : {1, 2, 3, 4}) ASSERT_TRUE(rank0.save(snapshot(Model(), step)));
  EXPECT_EQ(test::names_in(branch_folder(run_.path())),
            (std::vector<std::string>{"step-00000003", "step-00000004"}));
}

TEST_F(SaverTest, TheSameMomentIsWrittenOnce) {
  CheckpointSaver rank0 = saver(0);
  ASSERT_GT(rank0.save(snapshot(Model(), 1))->bytes, 0);
  EXPECT_EQ(rank0.save(snapshot(Model(), 1))->bytes, 0);
  ++order_;  // another order was applied: the settings may differ
  EXPECT_GT(rank0.save(snapshot(Model(), 1))->bytes, 0);
  EXPECT_GT(rank0.save(snapshot(Model(), 1, "tagged"))->bytes, 0);
}

/// How many names the tensors of a checkpoint have.
std::uintmax_t names_of_tensors(const std::filesystem::path& checkpoint) {
  return std::filesystem::hard_link_count(checkpoint / "rank-0.safetensors");
}

TEST_F(SaverTest, TheFirstCheckpointOfABranchSharesItsTensors) {
  const std::string origin = saver(0).save(snapshot(Model(), 500))->path;
  branch_ = "from-500";
  origin_ = origin;
  CheckpointSaver branch = saver(0);
  const std::string first = branch.save(snapshot(Model(), 500))->path;
  EXPECT_EQ(names_of_tensors(first), 2U);
  const auto manifest = verify_checkpoint(first);
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest->branch, "from-500");
  Model other;
  other.weights[0] = 7;
  EXPECT_EQ(names_of_tensors(branch.save(snapshot(other, 501))->path), 1U) << "another step";
  // Each is whole without the other.
  std::filesystem::remove_all(origin);
  EXPECT_TRUE(verify_checkpoint(first));
}

TEST_F(SaverTest, WhatIsDamagedIsntShared) {
  origin_ = saver(0).save(snapshot(Model(), 500))->path;
  std::string content = test::read_file(std::filesystem::path(origin_) / "rank-0.safetensors");
  content.back() ^= 1;
  test::write_file(std::filesystem::path(origin_) / "rank-0.safetensors", content);
  branch_ = "from-500";
  const auto saved = saver(0).save(snapshot(Model(), 500));
  ASSERT_TRUE(saved) << saved.error().message;
  EXPECT_EQ(names_of_tensors(saved->path), 1U);
  EXPECT_TRUE(verify_checkpoint(saved->path));
}

TEST_F(SaverTest, OneThatTurnsOutToBeTheBestIsMarkedAndNotWrittenAgain) {
  CheckpointSaver rank0 = saver(0);
  const std::string path = rank0.save(snapshot(Model(), 500))->path;
  const Model model;
  Snapshot best = snapshot(model, 500);
  best.best = BestEvaluation{1.5, 500, "main"};
  best.only_best = true;
  best.moment = RunMoment{2, Json{{"x", 1}}, Json::array()};
  std::filesystem::create_hard_link(std::filesystem::path(path) / "rank-0.safetensors", run_.path() / "kept");
  ASSERT_GT(rank0.save(best)->bytes, 0);
  EXPECT_EQ(names_of_tensors(path), 2U);
  const auto manifest = verify_checkpoint(path);
  ASSERT_TRUE(manifest) << manifest.error().message;
  EXPECT_TRUE(manifest->best);
  EXPECT_FALSE(manifest->only_best) << "it was saved for itself";
  EXPECT_EQ(manifest->journal, 2U) << "as it was at that step";
  EXPECT_EQ(manifest->store, (Json{{"x", 1}}));
}

TEST_F(SaverTest, TagsMoveAndTaggedOnesCanBeRemoved) {
  CheckpointSaver rank0 = saver(0);
  settings_.set("ckpt.keep", std::int64_t{1}, "test");
  ASSERT_TRUE(rank0.save(snapshot(Model(), 1, "good")));
  ASSERT_TRUE(rank0.save(snapshot(Model(), 2)));
  const auto names = [&] { return test::names_in(branch_folder(run_.path())); };
  using Names = std::vector<std::string>;
  const auto moved = rank0.tag("latest", 2, "good");
  ASSERT_TRUE(moved) << moved.error().message;
  ASSERT_EQ(moved->size(), 2U);
  EXPECT_EQ(names(), (Names{"step-00000001", "step-00000002-good"}));
  for (const auto& name : names()) EXPECT_TRUE(verify_checkpoint(branch_folder(run_.path()) / name)) << name;
  EXPECT_EQ(rank0.tag("good", 2, "good")->size(), 1U) << "it has it already";
  EXPECT_NE(rank0.tag("godo", 2, "x").error().message.find("did you mean good?"), std::string::npos);

  EXPECT_NE(rank0.remove("good").error().message.find("the run's newest checkpoint"), std::string::npos);
  ASSERT_TRUE(rank0.save(snapshot(Model(), 3)));
  EXPECT_EQ(names(), (Names{"step-00000002-good", "step-00000003"})) << "what lost its tag is as any other";
  EXPECT_NE(rank0.remove("latest").error().message.find("is no tag"), std::string::npos);
  const auto removed = rank0.remove("good");
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(names(), (Names{"step-00000003"}));
}

TEST_F(SaverTest, ATagStaysWhereTheRunsFolderIsReachedThroughALink) {
  const std::filesystem::path link = run_.path() / "link";
  std::filesystem::create_directory_symlink(run_.path(), link);
  CheckpointSaver rank0 = saver(0, link);
  ASSERT_TRUE(rank0.save(snapshot(Model(), 1)));
  const auto moved = rank0.tag("checkpoints/main/step-00000001", 1, "good");
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(moved->size(), 1U);
  EXPECT_TRUE(verify_checkpoint(moved->front().now)) << moved->front().now;
  EXPECT_EQ(test::names_in(branch_folder(run_.path())), (std::vector<std::string>{"step-00000001-good"}));
}

/// What a save beside training came to.
struct Outcome {
  std::optional<Result<Saved>> of;
  std::function<void(const Result<Saved>&)> take() {
    return [this](const Result<Saved>& saved) { of = saved; };
  }
};

class BesideTest : public SaverTest {
 protected:
  BesideTest() {
    ::setenv("FOOTPLATE_FAULT", "save_hold", 1);
    disk_ = open_disk(0);
    ::unsetenv("FOOTPLATE_FAULT");
    hold();
  }
  ~BesideTest() override { release(); }
  void hold() const { test::write_file(run_.path() / "hold_saves", ""); }
  void release() const { std::filesystem::remove(run_.path() / "hold_saves"); }
};

TEST_F(BesideTest, TheStateOfThatMomentIsWrittenWhileTrainingGoesOn) {
  Model model;
  CheckpointSaver rank0 = saver(0);
  Outcome outcome;
  const auto begun = rank0.begin(snapshot(model, 500), outcome.take());
  ASSERT_TRUE(begun) << begun.error().message;
  EXPECT_FALSE(begun->done);
  EXPECT_TRUE(rank0.is_writing());
  EXPECT_FALSE(std::filesystem::exists(begun->path));
  EXPECT_EQ(rank0.newest(), "");
  model.weights.assign(6, 0);  // training goes on
  release();
  rank0.finish();
  EXPECT_FALSE(rank0.is_writing());
  ASSERT_TRUE(outcome.of && *outcome.of);
  EXPECT_EQ((*outcome.of)->path, begun->path);
  EXPECT_EQ(rank0.newest(), begun->path);
  Model loaded;
  loaded.weights.assign(6, 9);
  ASSERT_TRUE(rank0.load(begun->path, loaded.state));
  EXPECT_EQ(loaded.weights, Model().weights);

  model = Model();
  const auto again = rank0.begin(snapshot(model, 500), outcome.take());
  ASSERT_TRUE(again && again->done);
  EXPECT_EQ(again->done->bytes, 0) << "it is there already";
}

TEST_F(BesideTest, OtherRanksHaveNothingToWrite) {
  CheckpointSaver rank1 = saver(1);
  Outcome outcome;
  const Model model;
  const auto begun = rank1.begin(snapshot(model, 500), outcome.take());
  ASSERT_TRUE(begun && begun->done);
  EXPECT_EQ(begun->path, (branch_folder(run_.path()) / "step-00000500").string());
}

TEST_F(BesideTest, OneThatFailsIsToldAndTheNextOneIsWritten) {
  ::setenv("FOOTPLATE_FAULT", "save_fail", 1);
  auto full = open_disk(0);
  ::unsetenv("FOOTPLATE_FAULT");
  release();
  std::swap(disk_, full);
  const Model model;
  {
    CheckpointSaver rank0 = saver(0);
    Outcome outcome;
    ASSERT_TRUE(rank0.begin(snapshot(model, 500), outcome.take()));
    rank0.finish();
    ASSERT_TRUE(outcome.of);
    ASSERT_FALSE(*outcome.of);
    EXPECT_NE(outcome.of->error().message.find("No space left on device"), std::string::npos);
    EXPECT_EQ(rank0.newest(), "");
    EXPECT_EQ(test::names_in(branch_folder(run_.path())), std::vector<std::string>()) << "nothing half";
  }
  std::swap(disk_, full);
  CheckpointSaver rank0 = saver(0);
  Outcome outcome;
  ASSERT_TRUE(rank0.begin(snapshot(model, 500), outcome.take()));
  rank0.finish();
  EXPECT_TRUE(*outcome.of);
}

TEST_F(BesideTest, WithoutMemoryForACopyTrainingWaitsAndIsTold) {
  release();
  std::vector<std::string> warnings;
  no_memory_ = true;
  warn_ = [&](const std::string& text) { warnings.push_back(text); };
  CheckpointSaver rank0 = saver(0);
  Outcome outcome;
  const Model model;
  const auto begun = rank0.begin(snapshot(model, 500), outcome.take());
  ASSERT_TRUE(begun && begun->done);
  EXPECT_TRUE(verify_checkpoint(begun->path));
  EXPECT_FALSE(outcome.of) << "it was over at once";
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_EQ(
      warnings.front(),
      "training waits for the checkpoint of step 500: a copy of the state takes 1 MiB, and only 0 MiB of "
      "memory are left");
}

TEST_F(BesideTest, WhateverElseIsDoneWithCheckpointsWaitsForIt) {
  const Model model;
  CheckpointSaver rank0 = saver(0);
  Outcome outcome;
  ASSERT_TRUE(rank0.begin(snapshot(model, 500), outcome.take()));
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    release();
  });
  const auto moved = rank0.tag("500", 500, "good");
  later.join();
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_TRUE(outcome.of);
  EXPECT_TRUE(verify_checkpoint(moved->front().now));
}

TEST_F(SaverTest, StateThatIsEachRanksOwnIsRefused) {
  CheckpointSaver rank0 = saver(0);
  const auto saved = rank0.save(snapshot(Model(Placement::local), 1));
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().message.find("'model/w' is each rank's own"), std::string::npos);
}

TEST_F(SaverTest, InjectedFullDiskFailsEverySave) {
  ASSERT_EQ(::setenv("FOOTPLATE_FAULT", "save_fail:rank=0", 1), 0);
  disk_ = open_disk(0);
  EXPECT_NE(dynamic_cast<FullDisk*>(disk_.get()), nullptr);
  EXPECT_EQ(dynamic_cast<FullDisk*>(open_disk(1).get()), nullptr);
  ::unsetenv("FOOTPLATE_FAULT");
  CheckpointSaver rank0 = saver(0);
  for (const std::int64_t step : {1, 2}) {
    const auto saved = rank0.save(snapshot(Model(), step));
    ASSERT_FALSE(saved);
    EXPECT_NE(saved.error().message.find("No space left on device"), std::string::npos);
  }
}

}  // namespace
}  // namespace footplate
