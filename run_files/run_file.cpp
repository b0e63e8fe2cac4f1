#include "run_files/run_file.h"

#include "protocol/messages/fields.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"

namespace footplate {

template <>
struct FieldsOf<RankPlace> {
  static void list(auto& field, auto& place) {
    field("rank", place.rank);
    field("host", place.host);
    field("pid", place.pid);
  }
};

template <>
struct FieldsOf<RunFile> {
  static void list(auto& field, auto& run) {
    field("id", run.id);
    field("name", run.name);
    field.unless_empty("directory", run.directory);
    field("state", run.state);
    field("protocol", run.protocol);
    field("socket", run.socket);
    field("host", run.host);
    field("launcher_host", run.launcher_host);
    field("started", run.started);
    field("starts_at", run.starts_at);
    field("world_size", run.world_size);
    field("ranks_asked", run.ranks_asked);
    field("hosts", run.hosts);
    field("named_hosts", run.named_hosts);
    field("spare_hosts", run.spare_hosts);
    field("slurm_job", run.slurm_job);
    field("slurm_restarts", run.slurm_restarts);
    field("ranks", run.ranks);
    field("console_pid", run.console_pid);
    field("launcher_pid", run.launcher_pid);
    field("launcher_started", run.launcher_started);
    field("step", run.step);
    field("best_evaluation", run.best_evaluation);
  }
};

Json to_json(const RunFile& run) {
  return write_fields(run);
}

std::string ranks_text(const RunFile& run) {
  if (!run.world_size) return "";
  const bool are_all = run.ranks_asked.value_or(0) <= *run.world_size;
  return std::to_string(*run.world_size) + (are_all ? "" : " of " + std::to_string(*run.ranks_asked));
}

RunFile run_file_from_json(const Json& json) {
  RunFile run = read_tolerantly<RunFile>(json);
  const auto ranks = json.is_object() ? json.find("ranks") : json.end();
  if (ranks == json.end() || !ranks->is_array()) return run;
  run.ranks.clear();  // one that is damaged doesn't hide the others
  for (const Json& rank : *ranks) run.ranks.push_back(read_tolerantly<RankPlace>(rank));
  return run;
}

Result<RunFile> read_run_file(const std::filesystem::path& run_directory) {
  const auto json = read_json_file(run_directory / kRunFile);
  if (!json) return tl::unexpected(json.error());
  if (!json->is_object())
    return fail(ErrorKind::usage, (run_directory / kRunFile).string() + " holds no object");
  return run_file_from_json(*json);
}

Result<void> update_run_file(const std::filesystem::path& run_directory, const RunFile& run) {
  return update_json_file(run_directory / kRunFile, to_json(run));
}

Result<void> record_end(const std::filesystem::path& run_directory, std::int64_t step) {
  return update_json_file(run_directory / kRunFile, {{"state", to_string(RunState::ended)}, {"step", step}});
}

}  // namespace footplate
