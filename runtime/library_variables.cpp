#include "runtime/library_variables.h"

#include <cstdlib>
#include <fstream>

#include "protocol/variables.h"
#include "runtime/control/schema_table.h"

namespace footplate {
namespace {

constexpr const char* kLog = "NCCL_DEBUG";
constexpr const char* kLogFile = "NCCL_DEBUG_FILE";

bool is_set(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0';
}

/// What is in the environment of the library and no setting of this run has put there.
std::string others(const Environment& environment) {
  std::string list;
  for (const auto& [name, text] : environment)
    if (name.starts_with("NCCL_") && !text.empty())
      list += (list.empty() ? "" : ", ") + name + "=" + excerpt(text);
  return list;
}

}  // namespace

std::vector<std::string> set_library_variables(const std::filesystem::path& run_directory, int start) {
  std::ifstream file(run_directory / ("config-" + std::to_string(start) + ".json"));
  const Json config = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (config.is_discarded()) return {};
  const Schema schema = runtime_schema();
  const auto settings = Settings::from_json(config, schema);
  if (!settings) return {};
  const Environment environment = environment_of_process();
  std::vector<std::string> said;
  for (const Variable& variable : variables_to_set(schema, *settings, environment)) {
    ::setenv(variable.name.c_str(), variable.text.c_str(), /*overwrite=*/1);
    said.push_back("NCCL's " + variable.name + "=" + variable.text + " (" + variable.setting + ", " +
                   variable.source + ")");
  }
  if (const std::string list = others(environment); !list.empty())
    said.push_back("NCCL's variables in the environment: " + list);
  for (const char* plugin : {kTunerPlugin, kProfilerPlugin}) ::setenv(plugin, kOwnPlugin, /*overwrite=*/0);
  if (is_set(kLog) && !is_set(kLogFile)) {  // by itself it writes to stdout, among the run's own lines
    const std::string path = (run_directory / "log" / "nccl-%h-%p.log").string();
    ::setenv(kLogFile, path.c_str(), /*overwrite=*/1);
  }
  return said;
}

}  // namespace footplate
