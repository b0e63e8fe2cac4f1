#include "console/launch/supervise/requeue.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>

#include "console/client/render/text.h"
#include "console/launch/start/ask_program.h"
#include "protocol/exit_codes.h"
#include "run_files/checkpoint_folders.h"
#include "run_files/json_file.h"

namespace footplate {
namespace {

constexpr std::chrono::seconds kScontrolTakes{30};
constexpr const char* kRequeueFile = "requeued.json";

Json record_of(const std::filesystem::path& directory, const SlurmJob& job, bool saved) {
  return {{"job", job.id}, {"checkpoint", newest_checkpoint(directory).string()}, {"saved", saved}};
}

}  // namespace

std::string why_not_requeued(const RunResult& result, const RequeueFacts& facts) {
  if (result.code != static_cast<int>(ExitCode::resumable))
    return "it ended with code " + std::to_string(result.code) + ", not " +
           std::to_string(static_cast<int>(ExitCode::resumable));
  const bool is_limit = facts.signal == 0 || (facts.signal == SIGTERM && facts.near_end);
  if (!is_limit && facts.signal != SIGUSR1 && facts.signal != SIGUSR2)
    return "a signal ended it, as scancel's does (SIGUSR1 is for the end of the job's time)";
  if (is_limit && !facts.saved)
    return "nothing was saved since it began (" + result.reason +
           "), and so it would go in the queue for ever";
  if (!facts.saved && facts.in_vain)
    return "it was put back before, and nothing was saved since; let the signal come later, or save more "
           "often (ckpt.every)";
  return "";
}

bool was_requeued_in_vain(const std::filesystem::path& directory, const SlurmJob& job) {
  const auto kept = read_json_file(directory / kRequeueFile);
  return kept && *kept == record_of(directory, job, false);
}

void keep_requeue(const std::filesystem::path& directory, const SlurmJob& job, bool saved) {
  [[maybe_unused]] const auto kept =
      write_json_file(directory / kRequeueFile, record_of(directory, job, saved));  // the code counts
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
