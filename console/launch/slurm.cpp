#include "console/launch/slurm.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

#include "console/client/render/text.h"
#include "console/client/runs/run_record.h"
#include "console/launch/ask_program.h"
#include "console/launch/settle.h"
#include "protocol/exit_codes.h"

namespace footplate {
namespace {

constexpr const char* kTimeLimit = "run.time_limit";
constexpr const char* kSource = "Slurm's end of job ";
constexpr double kTimeToSave_s = 120;
constexpr std::chrono::seconds kScontrolTakes{30};

}  // namespace

std::optional<SlurmJob> slurm_job(const Environment& environment) {
  const auto id = environment.find("SLURM_JOB_ID");
  if (id == environment.end() || id->second.empty()) return std::nullopt;
  SlurmJob job{id->second, std::nullopt};
  if (const auto end = environment.find("SLURM_JOB_END_TIME"); end != environment.end()) {
    std::int64_t seconds = 0;
    const char* last = end->second.data() + end->second.size();
    const auto read = std::from_chars(end->second.data(), last, seconds);
    if (read.ec == std::errc() && read.ptr == last && seconds > 0) job.end_s = seconds;
  }
  return job;
}

bool limit_to_job(Settings& settings, const SlurmJob& job, double now_s) {
  if (!job.end_s || !settings.has(kTimeLimit)) return false;
  const std::string& source = settings.source(kTimeLimit);
  if (source != "default" && !source.starts_with(kSource)) return false;
  const double left = static_cast<double>(*job.end_s) - now_s;
  const double limit = std::max(1.0, left - std::min(kTimeToSave_s, left / 4));
  settings.set(kTimeLimit, limit, kSource + job.id);
  return true;
}

std::string why_not_requeued(const Json& result, int signal, bool saved) {
  const auto code = integer_of(result, "code", static_cast<int>(ExitCode::failed));
  if (code != static_cast<int>(ExitCode::resumable))
    return "it ended with code " + std::to_string(code) + ", not " +
           std::to_string(static_cast<int>(ExitCode::resumable));
  if (signal != 0 && signal != SIGUSR1 && signal != SIGUSR2)
    return "a signal ended it, as scancel's does (SIGUSR1 is for the end of the job's time)";
  if (signal == 0 && !saved)
    return "nothing was saved since it began (" + text_of(result, "reason") +
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
