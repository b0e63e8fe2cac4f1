#include "runtime/rank/endings.h"

#include <string>
#include <utility>

#include "protocol/exit_codes.h"

namespace footplate {
namespace {

ExitCode code_of(const Ending& ending) {
  if (ending.script_error) return ExitCode::script;
  return ending.resumable ? ExitCode::resumable : ExitCode::done;
}

}  // namespace

RunResult result_of(const Trainer& trainer, const Result<Ending>& ending, int start, int recoveries,
                    const LoggedMetrics& last_evaluation) {
  // A collective that failed on this rank: another one was lost, or its connection; the state before is
  // whole.
  const ExitCode failure = trainer.failed_together() ? ExitCode::failed : ExitCode::resumable;
  RunResult result;
  result.code = static_cast<int>(ending ? code_of(*ending) : failure);
  result.reason = ending ? ending->reason : ending.error().message;
  result.step = trainer.step();
  if (trainer.skipped_in_row() > 0) result.skipped = trainer.skipped_in_row();
  if (std::string checkpoint = trainer.last_checkpoint(); !checkpoint.empty())
    result.checkpoint = std::move(checkpoint);
  result.restarts = start - 1;
  result.recoveries = recoveries;
  result.state_hash = trainer.state().hash_if_readable();
  result.eval_loss = last_evaluation.number("eval/loss");
  if (!ending) return result;
  result.note = ending->note;
  result.load = ending->load;
  return result;
}

RunResult refusal_of(const Error& error, int start) {
  // A rank that was lost before the first step leaves nothing to go on from.
  const ExitCode code = error.kind == ErrorKind::lost ? ExitCode::failed : exit_code_for(error.kind);
  RunResult result;
  result.code = static_cast<int>(code);
  result.reason = error.message;
  result.restarts = start - 1;
  return result;
}

}  // namespace footplate
