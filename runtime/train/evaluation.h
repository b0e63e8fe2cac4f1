#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "protocol/result.h"
#include "runtime/comm/communicator.h"
#include "runtime/tasks/hosted_task.h"
#include "runtime/train/evaluation_result.h"
#include "runtime/train/step_settings.h"

namespace footplate {

/// Which part of the held-out samples is evaluated, and how.
struct EvalPlan {
  std::int64_t batches = 0;  ///< over all ranks; 0: everything
  std::int64_t batch_size = 32;
  EvalMode mode = EvalMode::all;  ///< `one`: rank 0 alone, the others wait for its result
  Precision precision = Precision::fp32;
};

/// What an evaluation asks for while it runs, and tells. Training thread.
struct EvalPorts {
  std::function<bool()> abandon;       ///< whether this rank should give up; looked at between batches
  std::function<Result<void>()> meet;  ///< StepGate::meet; empty: nobody waits for anybody
  /// This rank's own result, where the ranks can't put theirs together; may be empty. Before the error.
  std::function<void(const LocalEvaluation&)> keep_local = {};
};

/// Evaluates on the held-out samples; the same result on any number of ranks, up to rounding, because
/// every chosen sample counts once. Where not all are wanted they are taken evenly spread, the same
/// ones every time. Training is untouched: no gradients, no cursor.
///
/// Collective, training thread. Before they reduce anything the ranks meet; where one doesn't come, none of
/// them reduces and all have the same error (timed_out). All sums are reduced at once at the end, with a
/// verdict: what throws on any rank is tried again by all, on the same samples with half the batch size,
/// three times at most where memory is short, else once. After that the result is that of the ranks that
/// didn't fail (partial), or where there is none an error (failed, naming the ranks), as it is where the loss
/// isn't finite. What ports.abandon asks any rank to give up is given up by all (refused). Where the meeting
/// or the reduction fails each rank has its own result in ports.keep_local. None of this hurts training.
Result<EvalResult> evaluate(HostedTask& task, Communicator& communicator, const EvalPlan& plan,
                            const EvalPorts& ports);

/// One rank's share of an evaluation, found without the others (AsyncEvaluation).
struct EvalShare {
  double loss = 0;  ///< sum over its tokens
  double tokens = 0;
  double samples = 0;
  double samples_wanted = 0;  ///< also where it failed
  double failed_ranks = 0;    ///< 1: it failed again and again, its sums are 0
  double abandoning_ranks = 0;
  double retries = 0;  ///< with smaller batches, after a failure
  double seconds = 0;
  std::vector<double> measured;  ///< as of SumsLayout
  std::string reason;            ///< of its last failure; empty: there was none

  /// Of this rank where it could evaluate none of its samples.
  static EvalShare failed(const HostedTask& task, const Communicator& communicator, const EvalPlan& plan,
                          std::string reason);
};

/// What evaluate() does on a rank before anything is reduced, with retries of its own. Not collective; any
/// thread that `task` belongs to. It throws where its device has failed, as evaluate() does, and only there.
EvalShare evaluate_share(HostedTask& task, const Communicator& communicator, const EvalPlan& plan,
                         const std::function<bool()>& abandon);

/// Collective: what all ranks' shares come to, with the errors of evaluate(). Seconds and retries are those
/// of the rank that had most.
Result<EvalResult> gather_shares(Communicator& communicator, const HostedTask& task, const EvalPlan& plan,
                                 const EvalShare& share, const EvalPorts& ports);

}  // namespace footplate
