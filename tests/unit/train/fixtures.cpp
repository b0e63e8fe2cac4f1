#include "tests/unit/train/fixtures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "runtime/schema/schema_table.h"
#include "runtime/train/faulty_training.h"

namespace footplate::testing {
namespace {

/// 20 kB of text that a model can learn something from, in a file of this process: others may run beside it.
struct Corpus {
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("footplate-train-test-" + std::to_string(::getpid()) + ".txt");
  Corpus() {
    std::ofstream out(path);
    for (int line = 0; line < 500; ++line)
      out << "line " << line << " of " << line * line % 97 << " and then on to the next\n";
  }
  Corpus(const Corpus&) = delete;
  Corpus& operator=(const Corpus&) = delete;
  ~Corpus() {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
};

std::string corpus_path() {
  static const Corpus corpus;
  return corpus.path.string();
}

}  // namespace

StepGate::Verdict FreeGate::enter(std::int64_t step) {
  if (const auto change = changes_.find(step); change != changes_.end()) {
    settings_.set(change->second.name, change->second.value, "test");
    moved[step] = steerable_.settings_changed(settings_, step);
  }
  if (const auto call = calls_.find(step); call != calls_.end())
    results.emplace(step, steerable_.call(call->second, step));
  if (hash_state) hashes[step] = hash_state();
  return step < settings_.integer("train.steps") ? Verdict::train : Verdict::end;
}

Result<BegunSave> MemorySaver::begin(const Snapshot& snapshot,
                                     std::function<void(const Result<Saved>&)> done) {
  finish();
  auto saved = save(snapshot);
  if (asked_while_writing == 0) return saved.map([](const Saved& one) { return BegunSave{one.path, one}; });
  asked_ = 0;
  conclude_ = [saved, done = std::move(done)] { done(saved); };
  return BegunSave{"step-" + std::to_string(snapshot.step) + snapshot.tag, {}};
}

void MemorySaver::finish() {
  if (auto conclude = std::exchange(conclude_, nullptr)) conclude();
}

bool MemorySaver::is_writing() const {
  if (conclude_ && ++asked_ > asked_while_writing) std::exchange(conclude_, nullptr)();
  return conclude_ != nullptr;
}

Result<Saved> MemorySaver::save(const Snapshot& snapshot) {
  if (disk_full || fails-- > 0) return fail(ErrorKind::failed, "no space left");
  const std::string path = "step-" + std::to_string(snapshot.step) + snapshot.tag;
  Copy& copy = checkpoints[path];
  copy.progress = snapshot.progress;
  copy.only_best = snapshot.only_best;
  copy.parts = snapshot.parts;
  for (const StateEntry& entry : snapshot.state.entries()) {
    std::vector<std::byte> room;
    const auto bytes = entry.on_host(room);
    copy.tensors[entry.name].assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return Saved{path, 1};
}

Result<Json> MemorySaver::load(const std::string& checkpoint, const StateTable& into) {
  const auto found = checkpoints.find(checkpoint);
  if (found == checkpoints.end()) return fail(ErrorKind::usage, "no such checkpoint");
  for (const StateEntry& entry : into.entries())
    entry.take(std::as_bytes(std::span(found->second.tensors.at(entry.name))));
  return found->second.progress;
}

Settings small_settings(const std::vector<std::string>& assignments) {
  const Schema schema = runtime_schema();
  Settings settings = Settings::defaults(schema);
  const auto set = [&](const std::string& name, const std::string& text) {
    const auto value = schema.check_text(name, text);
    if (!value) throw std::invalid_argument(value.error().message);
    settings.set(name, *value, "test");
  };
  set("data.corpus", corpus_path());
  for (const char* assignment :
       {"model.layers=2", "model.heads=2", "model.width=32", "model.context=16", "model.elements=50",
        "model.step_ms=0", "train.steps=10", "train.batch_size=7", "sched.warmup_steps=4",
        "sched.base_lr=0.01", "eval.every=0", "eval.at_end=false", "ckpt.every=0", "guard.check_every=0",
        "log.every=1", "log.perf_every=1", "log.detail_every=1", "run.threads=1", "comm.bucket_mb=0.02"}) {
    const std::string text = assignment;
    set(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
  }
  for (const std::string& text : assignments)
    set(text.substr(0, text.find('=')), text.substr(text.find('=') + 1));
  return settings;
}

std::vector<std::uint64_t> train(int world_size, const Settings& settings,
                                 const std::function<void(Rank&)>& before,
                                 const std::function<void(Rank&)>& after, ComputeDevice* device) {
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(world_size));
  run_ranks(world_size, [&](int rank, Communicator& communicator, Progress& progress) {
    MemorySink sink;
    MemorySaver saver;
    std::vector<std::string> told;
    FaultyTraining faulty(rank);
    auto trainer =
        Trainer::create(faulty.around({settings, communicator, progress, world_size, &saver, &sink,
                                       [&](const std::string& text) { told.push_back(text); }, device}));
    ASSERT_TRUE(trainer) << trainer.error().message;
    FreeGate gate(settings, **trainer);
    Rank me{communicator, progress, **trainer, gate, sink, saver, told};
    if (before) before(me);
    const auto ending = (*trainer)->run(gate);
    ASSERT_TRUE(ending) << ending.error().message;
    if (after) after(me);
    hashes[static_cast<std::size_t>(rank)] = (*trainer)->state().hash();
  });
  return hashes;
}

std::uint64_t final_hash(int world_size, const std::vector<std::string>& assignments,
                         const std::function<void(Rank&)>& before) {
  const auto hashes = train(world_size, small_settings(assignments), before);
  EXPECT_THAT(std::set<std::uint64_t>(hashes.begin(), hashes.end()), ::testing::SizeIs(1))
      << "the ranks ended apart";
  return hashes.front();
}

std::vector<Json> metrics_of(int world_size, const std::vector<std::string>& assignments,
                             const std::function<void(Rank&)>& before) {
  std::vector<Json> lines;
  train(world_size, small_settings(assignments), before, [&](Rank& rank) {
    if (rank.communicator.rank() == 0) lines = rank.sink.lines;
  });
  return lines;
}

std::vector<std::string> train_to_failure(int world_size, const Settings& settings) {
  std::vector<std::string> messages(static_cast<std::size_t>(world_size));
  run_ranks(world_size, [&](int rank, Communicator& communicator, Progress& progress) {
    FaultyTraining faulty(rank);
    auto trainer =
        Trainer::create(faulty.around({settings, communicator, progress, world_size, nullptr, nullptr, {}}));
    ASSERT_TRUE(trainer) << trainer.error().message;
    FreeGate gate(settings, **trainer);
    const auto ending = (*trainer)->run(gate);
    if (!ending) messages[static_cast<std::size_t>(rank)] = ending.error().message;
  });
  return messages;
}

}  // namespace footplate::testing
