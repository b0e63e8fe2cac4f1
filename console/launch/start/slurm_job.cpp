#include "console/launch/start/slurm_job.h"

#include <algorithm>
#include <charconv>

namespace footplate {
namespace {

constexpr const char* kTimeLimit = "run.time_limit";
constexpr const char* kSource = "Slurm's end of job ";
constexpr double kTimeToSave_s = 120;

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

}  // namespace footplate
