#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "protocol/result.h"
#include "runtime/train/evaluation_driver.h"
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
  /// The parameters of the new best evaluation, which ckpt.keep holds only as such. As save_or_warn().
  void save_best(const EvaluationDriver::BestParameters& best);
  /// ckpt.tag and ckpt.delete. Errors, the same on all ranks: what rank 0 can't do, and why.
  Result<SaveResult> tag(const std::string& ref, const std::string& tag);
  Result<SaveResult> remove(const std::string& tag);
  /// Goes on from `checkpoint`. An error of any rank is an error on all.
  Result<void> load(const std::string& checkpoint);
  /// Once run() runs, which load() comes before: whether the checkpoint was of another corpus.
  void tell_other_corpus();

  /// Of the newest one saved or loaded; empty: none.
  const std::string& last() const { return last_; }
  /// What a levelled rank is told of it.
  void set_last(std::string path) { last_ = std::move(path); }

 private:
  /// What a save is of.
  struct Source {
    std::int64_t step = 0;
    std::function<Snapshot()> snapshot;  ///< may throw
    std::string what = {};               ///< for people: "", " (the best evaluation)"
    StepGate::Interrupted interrupted = StepGate::Interrupted::save;
  };
  Result<void> check_rank_0() const;
  Result<SaveResult> save(const Source& source, const std::string& tag);
  tl::unexpected<Error> not_saved(const Error& error, const Source& source, const std::string& tag);
  void warn(std::int64_t step, const Error& error);
  bool is_newest(std::int64_t step) const;
  /// What rank 0 does, told to all: paths of before and now.
  Result<std::vector<MovedCheckpoint>> on_rank_0(
      const std::function<Result<std::vector<MovedCheckpoint>>()>& body);

  Training& training_;
  const Reporter& reporter_;
  std::string last_;
  std::string other_corpus_;  ///< than the loaded one's: what is to be told of it
};

}  // namespace footplate
