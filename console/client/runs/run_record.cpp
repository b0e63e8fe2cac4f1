#include "console/client/runs/run_record.h"

#include <chrono>
#include <ctime>

#include "console/client/runs/process_table.h"
#include "protocol/host_name.h"
#include "run_files/file_names.h"
#include "run_files/lease.h"
#include "run_files/result_file.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;

Life life_of(const RunRecord& record) {
  const bool has_ended = record.run.state == RunState::ended;
  // The processes are those of the folder that it was copied from.
  if (record.is_copy()) return record.result ? Life::ended : Life::lost;
  const bool is_far = record.launcher_elsewhere();
  if (!is_far && is_footplate_process(record.launcher(), record.run.launcher_started)) {
    // The supervisor lives on for a moment after it wrote the end, and the result before that.
    return has_ended ? Life::ended : Life::live;
  }
  if (record.result) return Life::ended;
  if (is_far && has_ended) return Life::ended;
  // The supervisor renews the lease, and rank 0 of several hosts; runs of earlier versions have none.
  if (is_far) return age_of_lease(record.directory).value_or(0s) > kLeaseEnds ? Life::lost : Life::live;
  // Ranks that nobody launched have no private folder.
  const auto folder = std::filesystem::path(record.socket()).replace_extension(".d").string();
  const bool is_spread = !record.run.hosts.empty();
  for (const RankPlace& rank : record.run.ranks) {
    if (is_spread && rank.host != host_name()) continue;
    if (record.launcher() != 0 ? is_process_of_run(rank.pid, folder) : is_footplate_process(rank.pid))
      return Life::live;
  }
  // Another host may have the run since this one was off.
  return is_spread && age_of_lease(record.directory).value_or(1h) <= kLeaseEnds ? Life::live : Life::lost;
}

}  // namespace

std::string_view to_string(Life life) {
  switch (life) {
    case Life::live:
      return "live";
    case Life::lost:
      return "lost";
    case Life::ended:
      return "ended";
  }
  return "?";
}

std::string RunRecord::socket() const {
  return run.socket;
}
std::string RunRecord::host() const {
  return run.host;
}
pid_t RunRecord::launcher() const {
  return run.launcher_pid;
}

std::string RunRecord::name() const {
  return directory.empty() ? run.name : directory.filename().string();
}

std::string RunRecord::state() const {
  if (life != Life::live) return std::string(to_string(life));
  return std::string(to_string(run.state.value_or(RunState::starting)));
}

std::int64_t RunRecord::step() const {
  return result ? result->step : run.step;
}

bool RunRecord::elsewhere() const {
  return !host().empty() && host() != host_name();
}

bool RunRecord::launcher_elsewhere() const {
  return run.launcher_host.empty() ? elsewhere() : run.launcher_host != host_name();
}

bool RunRecord::launcher_is_gone() const {
  return launcher() != 0 && !launcher_elsewhere() && !is_footplate_process(launcher(), run.launcher_started);
}

bool RunRecord::is_done() const {
  return life == Life::ended && result && result->reason == kEndedDone;
}

bool RunRecord::is_copy() const {
  if (run.directory.empty() || run.directory == directory) return false;
  std::error_code error;
  return std::filesystem::exists(run.directory, error) &&
         !std::filesystem::equivalent(run.directory, directory, error) && !error;
}

std::string RunRecord::outcome() const {
  const std::string copied = is_copy() ? "; this folder is a copy of " + run.directory : "";
  if (life == Life::live) return "is live";
  if (!result)
    return "was lost at or after step " + std::to_string(step()) +
           ": its processes are gone and left no result (a reboot, or everything was killed)" + copied;
  std::string text = "ended at step " + std::to_string(step()) + ": " +
                     (result->reason.empty() ? "no reason given" : result->reason);
  if (result->checkpoint) text += ", checkpoint " + *result->checkpoint;
  return text + " (exit code " + std::to_string(result->code) + ")" + copied;
}

std::string RunRecord::what_next() const {
  if (is_done())
    return "see: footplate report " + name() + "; for a longer run: footplate run --name " + name() +
           " --resume auto train.steps=" + std::to_string(2 * step());
  return "see: footplate log " + name() + "; go on with: footplate run --name " + name() + " --resume auto";
}

namespace {

Result<RunRecord> read_once(const std::filesystem::path& directory) {
  RunRecord record;
  std::error_code ignored;
  record.directory = std::filesystem::absolute(directory, ignored).lexically_normal();
  if (!record.directory.has_filename()) record.directory = record.directory.parent_path();
  auto run = read_run_file(record.directory);
  if (!run && run.error().kind == ErrorKind::usage)  // it can be read, and is no record
    return fail(ErrorKind::unreachable, run.error().message);
  if (!run)
    return fail(ErrorKind::unreachable, record.directory.string() + " holds no run: " + run.error().message);
  record.run = *std::move(run);
  record.result = read_result_file(record.directory / kResultFile);
  record.life = life_of(record);
  return record;
}

}  // namespace

/// One whose processes have ended since its files were read looks lost: the files tell, the second time.
Result<RunRecord> read_run(const std::filesystem::path& directory) {
  auto record = read_once(directory);
  if (record && record->life == Life::lost) return read_once(directory);
  return record;
}

double seconds_since(const std::string& iso) {
  std::tm utc{};
  const char* rest = ::strptime(iso.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (rest == nullptr) return -1;
  return std::difftime(std::time(nullptr), timegm(&utc));
}

}  // namespace footplate
