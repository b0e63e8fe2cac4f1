#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "protocol/settings.h"
#include "runtime/train/trainer.h"
#include "tests/unit/sim_ranks.h"

namespace footplate::testing {

using test::run_ranks;

/// A gate without control: lets every step pass, and applies what a test planned.
class FreeGate : public StepGate {
 public:
  FreeGate(Settings settings, Steerable& steerable) : settings_(std::move(settings)), steerable_(steerable) {}

  /// At the top of `step`, on every rank.
  void change_at(std::int64_t step, std::string name, Value value) {
    changes_[step] = {std::move(name), std::move(value)};
  }
  void call_at(std::int64_t step, Call call) { calls_[step] = std::move(call); }
  void abandon_calls() { abandon_ = true; }

  Verdict enter(std::int64_t step) override;
  Ending ending() const override { return {}; }
  const Settings& settings() const override { return settings_; }
  bool abandon() const override { return abandon_; }
  void report(StateHash state) override {
    if (on_report) on_report(state);
    states[state.step] = std::move(state);
  }
  Result<void> meet(const std::string& /*what*/, std::chrono::milliseconds /*at_most*/) override {
    ++meetings;
    return meeting_outcome;
  }
  void pause() override { ++pauses; }
  std::optional<DeferredCall> defer() override {
    return defers ? std::optional(DeferredCall()) : std::nullopt;
  }
  void conclude(const DeferredCall&, Result<CallResult> outcome) override {
    concluded.push_back(std::move(outcome));
  }
  void publish(EventData event) override {
    events[std::string(to_string(topic_of(event)))].push_back(to_json(event));
  }

  bool defers = false;
  std::vector<Result<CallResult>> concluded;  ///< of deferred calls
  int pauses = 0;
  int meetings = 0;
  Result<void> meeting_outcome;              ///< the same on all ranks
  std::map<std::int64_t, StateHash> states;  ///< as reported: of steps after which ranks differed
  std::function<void(const StateHash&)> on_report;
  std::function<std::uint64_t()> hash_state;
  std::map<std::int64_t, std::uint64_t> hashes;     ///< by hash_state, of the state at each enter()
  std::map<std::string, std::vector<Json>> events;  ///< by topic
  std::map<std::int64_t, std::vector<Moved>> moved;
  std::map<std::int64_t, Result<CallResult>> results;

 private:
  struct PlannedChange {
    std::string name;
    Value value;
  };
  Settings settings_;
  Steerable& steerable_;
  std::map<std::int64_t, PlannedChange> changes_;
  std::map<std::int64_t, Call> calls_;
  bool abandon_ = false;
};

/// A saver in memory: every checkpoint is a copy of the state.
class MemorySaver : public Saver {
 public:
  struct Copy {
    std::map<std::string, std::string> tensors;
    Json progress;
    bool only_best = false;
    int parts = 1;
  };
  int parts(const StateTable& /*state*/, const Settings& /*settings*/) const override { return writers; }
  Result<Saved> save(const Snapshot& snapshot) override;
  Result<BegunSave> begin(const Snapshot& snapshot, std::function<void(const Result<Saved>&)> done) override;
  void finish() override;
  bool is_writing() const override;
  Result<Json> load(const std::string& checkpoint, const StateTable& into) override;

  std::map<std::string, Copy> checkpoints;
  int writers = 1;  ///< ranks that are to write a part each
  bool disk_full = false;
  int fails = 0;                ///< so many saves, then no more
  int asked_while_writing = 0;  ///< a save that was begun is over after so many is_writing(), or finish()

 private:
  mutable int asked_ = 0;
  mutable std::function<void()> conclude_;  ///< what was begun
};

class MemorySink : public Sink {
 public:
  void write(const Json& metrics) override { lines.push_back(metrics); }
  std::vector<Json> lines;
};

/// A tiny model on a text of its own, or the synthetic task: defaults, then "name=value" texts.
Settings small_settings(const std::vector<std::string>& assignments = {});

/// One rank of a simulated world, with everything a trainer needs.
struct Rank {
  Communicator& communicator;
  Progress& progress;
  Trainer& trainer;
  FreeGate& gate;
  MemorySink& sink;
  MemorySaver& saver;
  std::vector<std::string>& told;  ///< lines for people
};

/// Trains on `world_size` simulated ranks and returns each one's final state hash. `before` runs on each
/// rank's thread between construction and run(), `after` when run() has succeeded.
std::vector<std::uint64_t> train(int world_size, const Settings& settings,
                                 const std::function<void(Rank&)>& before = {},
                                 const std::function<void(Rank&)>& after = {},
                                 ComputeDevice* device = nullptr);

/// The one hash that all ranks ended with.
std::uint64_t final_hash(int world_size, const std::vector<std::string>& assignments,
                         const std::function<void(Rank&)>& before = {});

/// Rank 0's metrics of a whole run.
std::vector<Json> metrics_of(int world_size, const std::vector<std::string>& assignments,
                             const std::function<void(Rank&)>& before = {});

/// train() for runs that are meant to fail: every rank's error message.
std::vector<std::string> train_to_failure(int world_size, const Settings& settings);

}  // namespace footplate::testing
