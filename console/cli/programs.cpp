#include "console/cli/programs.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>

#include "console/launch/start/ask_program.h"
#include "console/launch/start/find_rank.h"
#include "console/launch/start/signals.h"
#include "protocol/exit_codes.h"
#include "protocol/layout.h"
#include "protocol/settings.h"
#include "protocol/task_name.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"

namespace footplate {

std::filesystem::path program_folder() {
  if (const char* folder = std::getenv("FOOTPLATE_PROGRAMS"); folder != nullptr && *folder != '\0')
    return folder;
  return own_folder();
}

Result<Schema> load_schema() {
  const auto path = find_part(Part::schema, program_folder());
  auto json = read_json_file(path);
  if (!json)
    return fail(ErrorKind::failed, "the table of settings is missing: " + json.error().message +
                                       "; make it with: footplate-rank --schema > " + path.string());
  return Schema::from_json(*json);
}

namespace {

constexpr std::chrono::seconds kPluginTakes{300};  ///< to load LibTorch and a plugin from a cold network disk

Result<Schema> ask_for_schema(const std::string& task) {
  const auto rank = find_rank(program_folder());
  if (!rank) return tl::unexpected(rank.error());
  const std::vector<std::string> arguments{"--schema", "--task", task};
  auto answer = ask_program(*rank, arguments, "", STDOUT_FILENO, kPluginTakes);
  if (!answer) return tl::unexpected(answer.error());
  const Json json = Json::parse(answer->text, nullptr, /*allow_exceptions=*/false);
  const bool refused = answer->code == static_cast<int>(ExitCode::usage);
  if (answer->code == 0 && json.is_object()) return Schema::from_json(json);
  if (refused && json.is_object() && json.contains("error"))
    return fail(ErrorKind::usage, json.at("error").get<std::string>());
  const std::string start = "run.task = \"" + task + "\": ";
  constexpr auto kWhere = " while it was opened, or in declare()";
  if (!answer->in_time)
    return fail(ErrorKind::failed,
                start + "no end within " + std::to_string(kPluginTakes.count()) + " s" + kWhere);
  const auto why = ask_program(*rank, arguments, "", STDERR_FILENO, kPluginTakes);
  std::string said = why ? why->text : why.error().message;
  while (!said.empty() && said.back() == '\n') said.pop_back();
  const bool by_signal = answer->signal != 0;
  if (by_signal || said.empty())
    said = start + (by_signal ? signal_name(answer->signal) : "something") + " ended the process" + kWhere +
           (said.empty() ? "" : "\n" + said);
  return fail(refused ? ErrorKind::usage : ErrorKind::failed, said);
}

}  // namespace

Result<Schema> load_schema_of(const std::string& task) {
  static std::map<std::string, Schema> known;
  const std::string declaring = declares_settings(task) ? task : "";  // the others share one
  if (const auto found = known.find(declaring); found != known.end()) return found->second;
  auto schema = declaring.empty() ? load_schema() : ask_for_schema(declaring);
  if (schema) known.emplace(declaring, *schema);
  return schema;
}

Result<Schema> load_schema_of_run(const std::filesystem::path& directory, int start) {
  const auto config = read_json_file(config_path(directory, start));
  return load_schema_of(config ? Settings::text_in(*config, "run.task", "") : "");
}

}  // namespace footplate
