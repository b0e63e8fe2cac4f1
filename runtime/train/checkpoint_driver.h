#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "protocol/mutex.h"
#include "protocol/result.h"
#include "runtime/state/state_sweep.h"
#include "runtime/train/evaluation_driver.h"
#include "runtime/train/reporter.h"
#include "runtime/train/training.h"

namespace footplate {

/// Saves and loads a trainer's state, all ranks together, and knows the newest checkpoint. With ckpt.async
/// rank 0, or each of several ranks its part, copies the state and writes it beside training, one save at a
/// time. Rank 0 alone knows what becomes of it; the step's reduction tells all ranks whether any still writes
/// (StepSums::saves_under_way). Collective; training thread, except where marked.
class CheckpointDriver {
 public:
  CheckpointDriver(Training& training, const Reporter& reporter) : training_(training), reporter_(reporter) {}
  CheckpointDriver(const CheckpointDriver&) = delete;
  CheckpointDriver& operator=(const CheckpointDriver&) = delete;
  ~CheckpointDriver();  ///< waits for what is written beside training

  /// At the current step, while training waits. The result is ckpt.save's. Errors, the same on all ranks:
  /// refused, where the run has no saver; failed; lost, and the save is made again once the gate has brought
  /// the ranks together.
  Result<SaveResult> save(const std::string& tag);
  /// The same, where the run goes on without it: the checkpoints before are still there.
  void save_or_warn(const std::string& tag = "");
  /// The same where the run ends with it: the disk may be back within ckpt.retry_s.
  void save_at_end();
  /// ckpt.save, within its call. With ckpt.async its outcome comes once it is written (StepGate::defer).
  Result<SaveResult> save_by_order(const std::string& tag);

  /// After a step. Whether a periodic save is to be made now: where it is `due`, or has been since one was
  /// under way. `writing`: how many ranks wrote one as the step's gradients were reduced.
  bool takes_place(bool due, int writing);
  /// That one. A failure is a warning.
  void save_periodic();
  /// The parameters of the new best evaluation, which ckpt.keep holds only as such. As save_periodic().
  void save_best(const EvaluationDriver::BestParameters& best);

  /// Once for each periodic save that has failed: in how many seconds it is to be made again, if ckpt.every
  /// isn't due before. Rank 0 alone knows.
  std::optional<double> take_retry();

  /// Whether this rank writes beside training.
  bool is_writing() const {
    return training_.options.saver != nullptr && training_.options.saver->is_writing();
  }
  /// Whether the ranks' states are known to differ: told after each step that shows it, and when all are
  /// level again. The same on all ranks.
  void know_difference(bool differ) { differ_ = differ; }

  /// What is written beside training is waited for. Where a rank is lost, training_.lost says so.
  void finish();
  /// The same for what this rank alone can wait for. Not collective.
  void finish_here();
  /// Between steps, where settings may be others: room for copies, or none.
  void configure();
  /// A rank is lost: what several ranks write comes to no checkpoint any more. Where ranks may go back to
  /// one, what this rank writes alone is waited for. Not collective.
  void stand(bool may_go_back);
  /// This rank's number and the world are others now. Not collective.
  void moved();
  /// In a world of other ranks, once all have called moved(). What the rank 0 of before didn't get written is
  /// saved again. Errors: as of save().
  Result<void> rejoin();
  /// Before it, where ranks go back to a checkpoint: only what has a tag is saved again.
  void drop_periodic();

  /// ckpt.tag and ckpt.delete. Errors, the same on all ranks: what rank 0 can't do, and why.
  Result<SaveResult> tag(const std::string& ref, const std::string& tag);
  Result<SaveResult> remove(const std::string& tag);
  /// Goes on from `checkpoint`. An error of any rank is an error on all.
  Result<void> load(const std::string& checkpoint);
  /// Once run() runs, which load() comes before: whether the checkpoint was of another corpus.
  void tell_other_corpus();

  /// Rank 0: of the newest one saved or loaded; empty: none. What is under way is waited for.
  std::string last() const;

 private:
  enum class How { training_waits, beside, by_order };
  /// What a save is of.
  struct Source {
    std::int64_t step = 0;
    std::function<Snapshot()> snapshot;  ///< may throw
    int parts = 1;                       ///< as of Snapshot
    std::string what = {};               ///< for people: "", " (the best evaluation)"
    StepGate::Interrupted interrupted = StepGate::Interrupted::save;
  };
  /// A save that began beside training. Other ranks than 0 know it until the step's reduction tells that
  /// nothing is under way.
  struct UnderWay {
    std::int64_t step = 0;
    std::string tag, what;
    Progress::Clock::time_point since;
    std::optional<double> waited_s = {};    ///< of training, once it has gone on
    bool here = false;                      ///< all of it is with this rank
    bool periodic = false;                  ///< of ckpt.every
    std::optional<DeferredCall> call = {};  ///< that waits for it
  };
  bool is_rank_0() const { return training_.rank() == 0; }
  /// How many ranks are to write a save for which `parts` would do.
  Result<int> check_rank_0(int parts);
  /// All ranks have written their parts, if some were under way. Errors: lost.
  Result<void> settle();
  Source of_now(const std::string& tag) const;
  Result<SaveResult> save(const Source& source, const std::string& tag, How how);
  Result<BegunSave> begin(const Snapshot& snapshot, const UnderWay& under_way);
  void note_waited(Progress::Clock::time_point since);
  std::optional<Result<SaveResult>> defer();
  void conclude(const Result<Saved>& saved);  ///< the saver's thread
  void give_up();
  void forget(const Result<SaveResult>& outcome);  ///< the same
  SaveResult told(const UnderWay& of, const Saved& saved);
  tl::unexpected<Error> not_saved(const Error& error, const Source& source, const std::string& tag);
  enum class Retried { no, yes };
  void warn(std::int64_t step, const Error& error, Retried retried = Retried::no);
  bool is_newest(std::int64_t step) const REQUIRES(mutex_);
  /// What rank 0 does, told to all: paths of before and now.
  Result<std::vector<MovedCheckpoint>> on_rank_0(
      const std::function<Result<std::vector<MovedCheckpoint>>()>& body);

  Training& training_;
  const Reporter& reporter_;
  StateSweep whole_{training_.state};  ///< all of it at once, by two threads or the device
  bool parts_ = false;                 ///< several ranks may be writing; the same on all
  bool differ_ = false;
  bool postponed_ = false;         ///< a periodic save, until none is under way
  bool was_rank_0_ = is_rank_0();  ///< before rejoin()
  std::string other_corpus_;       ///< than the loaded one's: what is to be told of it

  mutable Mutex mutex_;
  std::string last_ GUARDED_BY(mutex_);
  int failures_ GUARDED_BY(mutex_) = 0;          ///< in a row
  bool wants_retry_ GUARDED_BY(mutex_) = false;  ///< the last one was periodic
  std::optional<UnderWay> under_way_ GUARDED_BY(mutex_);
  std::optional<Result<SaveResult>> outcome_ GUARDED_BY(mutex_);  ///< of one that no call waited for yet
};

}  // namespace footplate
