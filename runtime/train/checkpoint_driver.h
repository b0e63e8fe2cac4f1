#pragma once

#include <string>

#include "protocol/json.h"
#include "protocol/result.h"
#include "runtime/train/reporter.h"
#include "runtime/train/training.h"

namespace footplate {

/// Saves and loads a trainer's state, all ranks together, and knows the newest checkpoint. Collective;
/// training thread.
class CheckpointDriver {
 public:
  CheckpointDriver(Training& training, const Reporter& reporter) : training_(training), reporter_(reporter) {}

  /// At the current step. The result is ckpt.save's. Errors, the same on all ranks: refused, where the run
  /// has no saver; failed; lost, and the save is made again once the gate has brought the ranks together.
  Result<SaveResult> save(const std::string& tag);
  /// The same, where the run goes on without it: the checkpoints before are still there.
  void save_or_warn(const std::string& tag = "");
  /// Goes on from `checkpoint`. An error of any rank is an error on all.
  Result<void> load(const std::string& checkpoint);
  /// Once run() runs, which load() comes before: whether the checkpoint was of another corpus.
  void tell_other_corpus();

  /// Of the newest one saved or loaded; empty: none.
  const std::string& last() const { return last_; }
  /// What a levelled rank is told of it.
  void set_last(std::string path) { last_ = std::move(path); }

 private:
  Result<void> check_rank_0() const;
  tl::unexpected<Error> not_saved(const Error& error, const std::string& tag);

  Training& training_;
  const Reporter& reporter_;
  std::string last_;
  std::string other_corpus_;  ///< than the loaded one's: what is to be told of it
};

}  // namespace footplate
