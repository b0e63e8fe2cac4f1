#include "console/launch/supervise/requeue.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "console/client/render/text.h"
#include "console/launch/start/ask_program.h"
#include "protocol/exit_codes.h"

namespace footplate {
namespace {

constexpr std::chrono::seconds kScontrolTakes{30};

}  // namespace

std::string why_not_requeued(const RunResult& result, int signal, bool saved) {
  if (result.code != static_cast<int>(ExitCode::resumable))
    return "it ended with code " + std::to_string(result.code) + ", not " +
           std::to_string(static_cast<int>(ExitCode::resumable));
  if (signal != 0 && signal != SIGUSR1 && signal != SIGUSR2)
    return "a signal ended it, as scancel's does (SIGUSR1 is for the end of the job's time)";
  if (signal == 0 && !saved)
    return "nothing was saved since it began (" + result.reason +
           "), and so it would go in the queue for ever";
  return "";
}

Result<void> requeue(const SlurmJob& job) {
  const auto program = find_program("scontrol");
  if (!program) return fail(ErrorKind::failed, "there is no scontrol in PATH");
  const auto answer = ask_program(*program, {"requeue", job.id}, "", STDERR_FILENO, kScontrolTakes);
  if (!answer) return tl::unexpected(answer.error());
  if (!answer->in_time)
    return fail(ErrorKind::failed,
                "scontrol doesn't answer within " + std::to_string(kScontrolTakes.count()) + " s");
  if (answer->code == 0) return {};
  std::string said = answer->text;
  while (!said.empty() && said.back() == '\n') said.pop_back();
  return fail(ErrorKind::failed, "scontrol requeue " + job.id + " ended with code " +
                                     std::to_string(answer->code) +
                                     (said.empty() ? "" : ": " + printable(said)));
}

}  // namespace footplate
