#include "runtime/rank/endings.h"

#include <string>

#include "protocol/exit_codes.h"

namespace footplate {
namespace {

ExitCode code_of(const Ending& ending) {
  if (ending.script_error) return ExitCode::script;
  return ending.resumable ? ExitCode::resumable : ExitCode::done;
}

}  // namespace

Json result_of(const Trainer& trainer, const Result<Ending>& ending, int start, int recoveries,
               const Json& last_evaluation) {
  // A collective that failed on this rank: another one was lost, or its connection; the state before is
  // whole.
  const ExitCode failure = trainer.failed_together() ? ExitCode::failed : ExitCode::resumable;
  const std::string checkpoint = trainer.last_checkpoint();
  const auto hash = trainer.state().hash_if_readable();
  Json result = {{"code", static_cast<int>(ending ? code_of(*ending) : failure)},
                 {"reason", ending ? ending->reason : ending.error().message},
                 {"step", trainer.step()},
                 {"checkpoint", checkpoint.empty() ? Json() : Json(checkpoint)},
                 {"restarts", start - 1},
                 {"recoveries", recoveries},
                 {"state_hash", hash ? Json(*hash) : Json()},
                 {"eval_loss", last_evaluation.value("eval/loss", Json())}};
  if (ending && !ending->note.empty()) result["note"] = ending->note;
  if (ending && !ending->load.is_null()) result["load"] = ending->load;
  return result;
}

Json refusal_of(const Error& error, int start) {
  // A rank that was lost before the first step leaves nothing to go on from.
  const ExitCode code = error.kind == ErrorKind::lost ? ExitCode::failed : exit_code_for(error.kind);
  return {{"code", static_cast<int>(code)},
          {"reason", error.message},
          {"step", 0},
          {"checkpoint", nullptr},
          {"restarts", start - 1}};
}

}  // namespace footplate
