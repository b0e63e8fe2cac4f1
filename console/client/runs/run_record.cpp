#include "console/client/runs/run_record.h"

#include <unistd.h>

#include <array>
#include <ctime>

#include "console/client/runs/process_table.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"

namespace footplate {
namespace {

Life life_of(const RunRecord& record) {
  if (is_footplate_process(record.launcher(),
                           static_cast<std::uint64_t>(integer_of(record.run, "launcher_started", 0))) &&
      !record.elsewhere()) {
    // The supervisor lives on for a moment after it wrote the end, and the result before that.
    return text_of(record.run, "state") == "ended" ? Life::ended : Life::live;
  }
  if (record.result.is_object()) return Life::ended;
  if (record.elsewhere()) return text_of(record.run, "state") == "ended" ? Life::ended : Life::live;
  // Ranks that nobody launched have no private folder.
  const auto folder = std::filesystem::path(record.socket()).replace_extension(".d").string();
  const Json ranks = record.run.contains("ranks") ? record.run["ranks"] : Json();
  for (const auto& rank : ranks.is_array() ? ranks : Json::array())
    if (const auto pid = static_cast<pid_t>(integer_of(rank, "pid", 0));
        record.launcher() != 0 ? is_process_of_run(pid, folder) : is_footplate_process(pid))
      return Life::live;
  return Life::lost;
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
  return text_of(run, "socket");
}
std::string RunRecord::host() const {
  return text_of(run, "host");
}
pid_t RunRecord::launcher() const {
  return static_cast<pid_t>(integer_of(run, "launcher_pid", 0));
}

std::string RunRecord::name() const {
  const std::string name = text_of(run, "name");
  return name.empty() ? directory.filename().string() : name;
}

std::string RunRecord::state() const {
  if (life != Life::live) return std::string(to_string(life));
  const std::string state = text_of(run, "state");
  return state.empty() ? "starting" : state;
}

std::int64_t RunRecord::step() const {
  return integer_of(result, "step", integer_of(run, "step", 0));
}

bool RunRecord::elsewhere() const {
  return !host().empty() && host() != host_name();
}

std::string RunRecord::outcome() const {
  if (life == Life::live) return "is live";
  if (!result.is_object())
    return "was lost at or after step " + std::to_string(step()) +
           ": its processes are gone and left no result (a reboot, or everything was killed)";
  const std::int64_t code = integer_of(result, "code", 1);
  const std::string reason = text_of(result, "reason");
  std::string text =
      "ended at step " + std::to_string(step()) + ": " + (reason.empty() ? "no reason given" : reason);
  if (const std::string checkpoint = text_of(result, "checkpoint"); !checkpoint.empty())
    text += ", checkpoint " + checkpoint;
  return text + " (exit code " + std::to_string(code) + ")";
}

namespace {

Result<RunRecord> read_once(const std::filesystem::path& directory) {
  RunRecord record;
  std::error_code ignored;
  record.directory = std::filesystem::absolute(directory, ignored).lexically_normal();
  if (!record.directory.has_filename()) record.directory = record.directory.parent_path();
  auto run = read_json_file(record.directory / kRunFile);
  if (!run)
    return fail(ErrorKind::unreachable, record.directory.string() + " holds no run: " + run.error().message);
  if (!run->is_object())
    return fail(ErrorKind::unreachable, (record.directory / kRunFile).string() + " holds no object");
  record.run = *std::move(run);
  if (auto result = read_json_file(record.directory / kResultFile)) record.result = *std::move(result);
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

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

double seconds_since(const std::string& iso) {
  std::tm utc{};
  const char* rest = ::strptime(iso.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (rest == nullptr) return -1;
  return std::difftime(std::time(nullptr), timegm(&utc));
}

}  // namespace footplate
