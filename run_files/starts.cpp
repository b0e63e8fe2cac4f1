#include "run_files/starts.h"

#include <fstream>

#include "protocol/json_fields.h"
#include "run_files/file_names.h"

namespace footplate {
namespace {

Json member(const Json& object, const char* field, Json::value_t type) {
  const auto found = object.find(field);
  return found != object.end() && found->type() == type ? *found : Json(type);
}

}  // namespace

Json to_json(const StartRecord& start) {
  return {{"start", start.start},     {"config", config_name(start.start)},
          {"time", start.time},       {"versions", start.versions},
          {"hosts", start.hosts},     {"world_size", start.world_size},
          {"step", start.step},       {"resumed", start.resumed.empty() ? Json() : Json(start.resumed)},
          {"journal", start.journal}, {"given", start.given},
          {"branch", start.branch},   {"loaded", start.loaded}};
}

StartRecord start_from_json(const Json& json) {
  StartRecord start;
  if (!json.is_object()) return start;
  start.start = static_cast<int>(integer_of(json, "start", 0));
  start.time = text_of(json, "time");
  start.versions = member(json, "versions", Json::value_t::object);
  for (const Json& host : member(json, "hosts", Json::value_t::array))
    start.hosts.push_back(host.is_string() ? host.get<std::string>() : "");
  start.world_size = static_cast<int>(integer_of(json, "world_size", 0));
  start.step = integer_of(json, "step", 0);
  start.resumed = text_of(json, "resumed");
  start.journal = static_cast<std::uint64_t>(integer_of(json, "journal", 0));
  start.given = member(json, "given", Json::value_t::object);
  if (const std::string branch = text_of(json, "branch"); !branch.empty()) start.branch = branch;
  start.loaded = flag_of(json, "loaded");
  return start;
}

bool has_begun(const std::filesystem::path& run_directory, int start) {
  const auto records = read_start_records(run_directory);
  return records && std::any_of(records->begin(), records->end(),
                                [start](const StartRecord& one) { return one.start == start; });
}

std::int64_t first_step_of(const std::filesystem::path& run_directory, int start) {
  std::int64_t step = 0;
  if (const auto starts = read_start_records(run_directory))
    for (const StartRecord& one : *starts)
      if (one.start == start) step = one.step;
  return step;
}

Result<std::vector<StartRecord>> read_start_records(const std::filesystem::path& run_directory) {
  std::vector<StartRecord> starts;
  const auto path = run_directory / kStartsFile;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (file.eof()) break;
    const auto json = parse_line(line);
    if (!json || !json->is_object())
      return fail(ErrorKind::usage, path.string() + " has a line that isn't an object");
    starts.push_back(start_from_json(*json));
  }
  return starts;
}

}  // namespace footplate
