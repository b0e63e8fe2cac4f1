#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "protocol/json.h"
#include "protocol/messages/best_evaluation.h"
#include "protocol/result.h"
#include "protocol/settings.h"
#include "runtime/state/state_table.h"

namespace footplate {

/// What one checkpoint is made of. References: valid during the call.
struct Snapshot {
  std::int64_t step = 0;     ///< completed steps
  std::string tag;           ///< empty: a periodic one, which ckpt.keep may remove later
  const StateTable& state;   ///< every persistent tensor, unchanged during the call
  const Settings& settings;  ///< in force
  Json progress;             ///< what the trainer needs back on resume; opaque to the saver
  std::optional<BestEvaluation> best = {};  ///< so far, of this step or an earlier one
};

/// What a save made.
struct Saved {
  std::string path;        ///< of the checkpoint's folder; the same text on every rank
  std::int64_t bytes = 0;  ///< written by this rank
};

/// Where checkpoints go and come from. Implemented by runtime/checkpoint, handed to the trainer by main.
class Saver {
 public:
  virtual ~Saver() = default;

  /// Training thread, on every rank at the same step: writes what this rank has to write (replicated
  /// tensors: rank 0 alone). The trainer makes one verdict of all ranks' results. Error: disk full, …
  virtual Result<Saved> save(const Snapshot& snapshot) = 0;

  /// Training thread, before the first step, on every rank: fills the tensors of `into` from
  /// `checkpoint` (a path) and returns what was given as Snapshot::progress. Errors: not there,
  /// damaged, or names, types or shapes that differ from `into`; then the tensors are undefined.
  virtual Result<Json> load(const std::string& checkpoint, const StateTable& into) = 0;

  /// Training thread: this rank's number and the world are others now, since ranks were lost.
  virtual void moved_to(int /*rank*/, int /*world_size*/) {}
};

/// Where metrics go: metrics.jsonl and whatever else main() wires up.
class Sink {
 public:
  virtual ~Sink() = default;

  /// Training thread of rank 0: one flat object (docs: "metrics.jsonl"). Must not wait for a disk.
  virtual void write(const Json& metrics) = 0;
};

}  // namespace footplate
