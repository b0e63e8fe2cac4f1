#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "protocol/messages/best_evaluation.h"
#include "protocol/result.h"
#include "protocol/settings.h"
#include "runtime/state/state_table.h"

namespace footplate {

/// What a run has besides its training at a step.
struct RunMoment {
  std::uint64_t order = 0;  ///< id of the last order applied; 0: none
  Json store = Json::object();
  Json orders = Json::array();  ///< agreed for a later step
};

/// What one checkpoint is made of. References: valid during the call.
struct Snapshot {
  std::int64_t step = 0;                    ///< completed steps
  std::string tag;                          ///< empty: a periodic one, which ckpt.keep may remove later
  const StateTable& state;                  ///< every persistent tensor, unchanged during the call
  const Settings& settings;                 ///< in force
  Json progress;                            ///< what the trainer needs back on resume; opaque to the saver
  std::optional<BestEvaluation> best = {};  ///< so far, of this step or an earlier one
  bool only_best = false;                   ///< saved for that alone
  std::optional<RunMoment> moment = {};     ///< of `step`, where that isn't now
  int parts = 1;  ///< so many ranks write it, a part each; all of them where state is sharded
};

/// What a save made.
struct Saved {
  std::string path;        ///< of the checkpoint's folder; the same text on every rank
  std::int64_t bytes = 0;  ///< rank 0: of the whole checkpoint; 0: it was there already
};

/// A save that goes on beside training, or was over at once.
struct BegunSave {
  std::string path;           ///< of the checkpoint's folder; the same text on every rank
  std::optional<Saved> done;  ///< nothing: it goes on
};

/// One that has another tag now.
struct MovedCheckpoint {
  std::string before;  ///< path
  std::string now;
};

/// Where checkpoints go and come from. Implemented by runtime/checkpoint, handed to the trainer by main.
class Saver {
 public:
  virtual ~Saver() = default;

  /// Training thread, on every rank at the same step: writes what this rank has to write. Collective where
  /// Snapshot::parts isn't 1. The trainer makes one verdict of all ranks' results. Error: disk full, …; lost.
  virtual Result<Saved> save(const Snapshot& snapshot) = 0;

  /// The same beside training: returns once what there is to be written is copied, and `done` is called with
  /// the outcome, once, on rank 0, on a thread of the saver's. Waits for the one before. Where
  /// nothing is to be done, or there is no memory for a copy, it is over when this returns, and `done` isn't
  /// called.
  virtual Result<BegunSave> begin(
      const Snapshot& snapshot,
      std::function<void(const Result<Saved>&)> /*done*/) {  // NOLINT(performance-unnecessary-value-param)
    return save(snapshot).map([](const Saved& saved) { return BegunSave{saved.path, saved}; });
  }
  /// How many ranks are to write this state, a part each (ckpt.parts). The same on all ranks.
  virtual int parts(const StateTable& /*state*/, const Settings& /*settings*/) const { return 1; }
  /// Training thread: whether what was begun last is of parts. The same on all ranks.
  virtual bool awaits_parts() const { return false; }
  /// Training thread: waits until this rank's own part is written.
  virtual void finish_part() {}
  /// Rank 0, training thread: all ranks have written their parts. Word of them comes soon, or never.
  virtual void expect_parts() {}
  /// Training thread: gives up parts that are under way, as a rank was lost. Rank 0: whether what was begun
  /// comes to nothing by that, and `done` isn't called.
  virtual bool give_up() { return false; }
  /// Training thread: waits until nothing that was begun goes on here, and its `done` has returned. Rank 0
  /// waits for the parts of all ranks.
  virtual void finish() {}
  /// Whether something that was begun goes on here. Any thread.
  virtual bool is_writing() const { return false; }
  /// Training thread: makes what begin() needs for this state, beside training.
  virtual void make_room(const StateTable& /*state*/, const Settings& /*settings*/) {}
  /// The same: gives it back.
  virtual void give_room_back() {}
  /// Rank 0, training thread: path of the newest checkpoint that is whole, as far as its folder shows; empty:
  /// none.
  virtual std::string newest() const { return ""; }

  /// Training thread, before the first step, on every rank: fills the tensors of `into` from
  /// `checkpoint` (a path) and returns what was given as Snapshot::progress. Errors: not there,
  /// damaged, or names, types or shapes that differ from `into`; then the tensors are undefined.
  virtual Result<Json> load(const std::string& checkpoint, const StateTable& into) = 0;

  /// What Snapshot::moment would be of now. Training thread.
  virtual RunMoment moment() const { return {}; }

  /// Rank 0: whether `ref` names a checkpoint, to a run at `step` (find_checkpoint). Any thread.
  virtual Result<void> look_for(const std::string& /*ref*/, std::int64_t /*step*/) const { return {}; }

  /// Rank 0, training thread. Gives the tag to the checkpoint that `ref` names, and takes it from the one
  /// that had it, which ckpt.keep may then remove. Returns the paths of before and now of each that moved,
  /// the tagged one first.
  virtual Result<std::vector<MovedCheckpoint>> tag(const std::string& /*ref*/, std::int64_t /*step*/,
                                                   const std::string& /*tag*/) {
    return fail(ErrorKind::refused, "this run has no checkpoints");
  }

  /// Rank 0, training thread. Removes the checkpoint with this tag, which isn't the run's newest. Returns its
  /// path.
  virtual Result<std::string> remove(const std::string& /*tag*/) {
    return fail(ErrorKind::refused, "this run has no checkpoints");
  }

  /// Training thread: this rank's number and the world are others now, since ranks were lost.
  virtual void moved_to(int /*rank*/, int /*world_size*/) {}
  /// Rank 0, training thread, once all ranks have moved: removes what was given up.
  virtual void tidy() {}
};

/// Where metrics go: metrics.jsonl and whatever else main() wires up.
class Sink {
 public:
  virtual ~Sink() = default;

  /// Training thread of rank 0: one flat object (docs: "metrics.jsonl"). Must not wait for a disk.
  virtual void write(const Json& metrics) = 0;
  /// Training thread of the others: what rank 0 writes of an evaluation, for whoever comes to lead.
  virtual void keep(const Json& /*metrics*/) {}
};

}  // namespace footplate
