#include "runtime/base/library_variables.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>

#include "protocol/fnv.h"
#include "protocol/nccl/variable_files.h"
#include "protocol/network/preset.h"
#include "run_files/file_names.h"

namespace footplate {
namespace {

constexpr const char* kLogFile = "NCCL_DEBUG_FILE";

bool is_set(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0';
}

/// A variable that can be set and unset while other threads read the environment: its place is taken before
/// there are any, under a name that nobody asks for, and from then on only its bytes change.
class LateVariable {
 public:
  /// Keeps its place for as long as the process lives.
  explicit LateVariable(std::string name) : name_(std::move(name)) {
    text_.fill('\0');
    std::copy(name_.begin(), name_.end(), text_.begin());
    text_[0] = kNobodys;
    text_[name_.size()] = '=';
    ::putenv(text_.data());
  }
  LateVariable(const LateVariable&) = delete;
  LateVariable& operator=(const LateVariable&) = delete;

  /// Empty: unset. Whether it is another text than before.
  bool set(const std::string& text) {
    char* value = text_.data() + name_.size() + 1;
    if (text == value) return false;
    text_[0] = kNobodys;
    const std::size_t size = std::min(text.size(), text_.size() - name_.size() - 2);
    text.copy(value, size);
    std::memset(value + size, 0, static_cast<std::size_t>(text_.data() + text_.size() - value) - size);
    if (!text.empty()) text_[0] = name_[0];
    return true;
  }

 private:
  static constexpr char kNobodys = '~';
  const std::string name_;
  std::array<char, 512> text_{};
};

struct LogVariable {
  SettingSpec spec;
  std::unique_ptr<LateVariable> variable;
};

/// By setting; empty where the environment of footplate run has the variable.
using LogVariables = std::map<std::string, LogVariable>;
LogVariables& log_variables() {
  static auto* variables = new LogVariables();
  return *variables;
}

constexpr std::array kLogSettings{"nccl.debug", "nccl.debug_subsystems"};

/// The same in all processes of a run, and hardly that of another run on the host: NCCL's RAS listens there.
std::string ras_address(const std::filesystem::path& run_directory, int start) {
  constexpr unsigned kFirst = 20'000, kPorts = 12'000;  // below those that the system hands out
  return "localhost:" +
         std::to_string(kFirst + fnv1a(run_directory.string() + "#" + std::to_string(start)) % kPorts);
}

/// What the first of `files` that has the variable says; empty: nothing.
std::string told_by(const std::vector<VariableFile>& files, const char* name) {
  for (const VariableFile& file : files)
    if (const auto found = file.variables.find(name); found != file.variables.end()) return found->second;
  return {};
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

std::vector<std::string> set_library_variables(const Schema& schema,
                                               const std::filesystem::path& run_directory, int start) {
  std::ifstream file(config_path(run_directory, start));
  Json config = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return {};
  // A plugin's own settings, which only its schema knows, set no variable.
  for (auto one = config.begin(); one != config.end();)
    one = schema.setting(one.key()) == nullptr ? config.erase(one) : std::next(one);
  auto settings = Settings::from_json(config, schema);
  if (!settings) return {};
  const Environment environment = environment_of_process();
  const auto files =
      nccl_files(environment);  // of this host, which may be another one's than footplate run's
  std::vector<std::string> said;
  settings = with_preset(schema, *std::move(settings), read_network("/"), said);
  for (const Variable& variable : variables_to_set(schema, *settings, environment)) {
    if (is_preset(variable.source) && !told_by(files, variable.name.c_str()).empty()) continue;
    ::setenv(variable.name.c_str(), variable.text.c_str(), /*overwrite=*/1);
    said.push_back(with_library(variable.name) + "=" + variable.text + " (" + variable.setting + ", " +
                   variable.source + ")");
  }
  if (const std::string list = others(environment); !list.empty())
    said.push_back("NCCL's variables in the environment: " + list);
  for (const VariableFile& file : files)
    if (const std::string list = others(file.variables); !list.empty())
      said.push_back("NCCL's variables in " + excerpt(file.path) + ": " + list);
  for (const char* plugin : {kTunerPlugin, kProfilerPlugin}) ::setenv(plugin, kOwnPlugin, /*overwrite=*/0);
  ::setenv(kRasAddress, ras_address(run_directory, start).c_str(), /*overwrite=*/0);
  if (!is_set(kLogFile) &&
      told_by(files, kLogFile).empty()) {  // by itself it writes to stdout, among the run's own lines
    const std::string path = (run_directory / "log" / "nccl-%h-%p.log").string();
    ::setenv(kLogFile, path.c_str(), /*overwrite=*/1);
  }
  for (const char* name : kLogSettings) {
    const SettingSpec& spec = *schema.setting(name);
    if (is_set(spec.variable.c_str()) || is_from_file(settings->source(name))) continue;
    log_variables()[name] = {spec, std::make_unique<LateVariable>(spec.variable)};
    if (const auto text = variable_text(spec, settings->value(name)))
      said.push_back("NCCL's " + spec.variable + "=" + *text + " (" + name + ", " + settings->source(name) +
                     ")");
  }
  set_log_variables(*settings);
  return said;
}

bool set_log_variables(const Settings& settings) {
  bool changed = false;
  for (const auto& [name, log] : log_variables())
    if (log.variable->set(variable_text(log.spec, settings.value(name)).value_or(""))) changed = true;
  return changed;
}

}  // namespace footplate
