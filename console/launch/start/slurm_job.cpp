#include "console/launch/start/slurm_job.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "console/client/render/text.h"
#include "console/launch/start/ask_program.h"

namespace footplate {
namespace {

constexpr const char* kTimeLimit = "run.time_limit";
constexpr const char* kDefault = "default";  ///< there is no limit
constexpr const char* kSource = "Slurm's end of job ";
constexpr double kTimeToSave_s = 120;
constexpr std::chrono::seconds kSqueueTakes{10};

/// From here on Slurm numbers steps that aren't srun's: the batch script's, and the shell of `salloc`, which
/// may have the whole job's SLURM_STEP_NUM_TASKS.
constexpr std::int64_t kStepsOfSlurmsOwn = 0xfffffff0;

/// Of the whole text; nothing: it is no number.
std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const char* last = text.data() + text.size();
  const auto read = std::from_chars(text.data(), last, value);
  return read.ec == std::errc() && read.ptr == last ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<std::int64_t> number_in(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::nullopt : number(found->second);
}

std::optional<SlurmJob> slurm_job(const Environment& environment) {
  const auto id = environment.find("SLURM_JOB_ID");
  if (id == environment.end() || id->second.empty()) return std::nullopt;
  SlurmJob job{.id = id->second, .end_s = std::nullopt};
  if (const auto end = number_in(environment, "SLURM_JOB_END_TIME"); end && *end > 0) job.end_s = end;
  job.restarts = static_cast<int>(number_in(environment, "SLURM_RESTART_COUNT").value_or(0));
  return job;
}

std::optional<std::int64_t> seconds_left(std::string_view text) {
  constexpr std::int64_t kDay = 86400;
  std::int64_t days = 0;
  if (const auto dash = text.find('-'); dash != std::string_view::npos) {
    const auto read = number(text.substr(0, dash));
    if (!read) return std::nullopt;
    days = *read;
    text.remove_prefix(dash + 1);
  }
  std::int64_t seconds = 0;
  int parts = 0;
  for (bool more = true; more; ++parts) {
    const auto colon = text.find(':');
    const auto read = number(text.substr(0, colon));
    if (!read || *read < 0 || *read >= kDay) return std::nullopt;
    seconds = seconds * 60 + *read;
    more = colon != std::string_view::npos;
    if (more) text.remove_prefix(colon + 1);
  }
  if (parts < 2 || parts > 3) return std::nullopt;
  return days * kDay + seconds;
}

std::string ask_for_end(SlurmJob& job, std::int64_t now_s) {
  if (job.end_s) return {};
  const std::string unknown =
      "the end of Slurm's job " + job.id + " isn't known, so run.time_limit isn't set: ";
  const auto program = find_program("squeue");
  if (!program) return unknown + "there is no squeue in PATH";
  const auto answer =
      ask_program(*program, {"-h", "-j", job.id, "-o", "%L"}, "", STDOUT_FILENO, kSqueueTakes);
  if (!answer) return unknown + answer.error().message;
  if (!answer->in_time)
    return unknown + "squeue doesn't answer within " + std::to_string(kSqueueTakes.count()) + " s";
  if (answer->code != 0) return unknown + "squeue ended with code " + std::to_string(answer->code);
  const std::string text = answer->text.substr(0, answer->text.find('\n'));
  if (text == "UNLIMITED") return {};
  const auto left = seconds_left(text);
  if (!left) return unknown + "squeue says '" + printable(text) + "' of the time that is left";
  job.end_s = now_s + *left;
  return {};
}

void forget_earlier_job(Settings& settings) {
  if (settings.has(kTimeLimit) && settings.source(kTimeLimit).starts_with(kSource))
    settings.set(kTimeLimit, 0.0, kDefault);
}

bool limit_to_job(Settings& settings, const SlurmJob& job, double now_s) {
  if (!job.end_s || !settings.has(kTimeLimit) || settings.source(kTimeLimit) != kDefault) return false;
  const double left = static_cast<double>(*job.end_s) - now_s;
  const double limit = std::max(1.0, left - std::min(kTimeToSave_s, left / 4));
  settings.set(kTimeLimit, limit, kSource + job.id);
  return true;
}

bool is_in_step(const Environment& environment) {
  return number_in(environment, "SLURM_STEP_ID").value_or(kStepsOfSlurmsOwn) < kStepsOfSlurmsOwn;
}

}  // namespace footplate
