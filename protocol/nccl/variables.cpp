#include "protocol/nccl/variables.h"

#include <algorithm>
#include <cctype>
#include <string_view>

extern char** environ;

namespace footplate {
namespace {

/// Libraries take an empty variable as one that isn't set.
const std::string* set_in(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() || found->second.empty() ? nullptr : &found->second;
}

/// What a variable is, and which file says so; none: the environment itself.
struct Told {
  std::string text;
  std::string file;
};

std::map<std::string, Told> all_told(const Environment& environment, const std::vector<VariableFile>& files) {
  std::map<std::string, Told> all;
  for (const auto& [name, text] : environment) all.try_emplace(name, Told{text, ""});
  for (const auto& file : files)
    for (const auto& [name, text] : file.variables) all.try_emplace(name, Told{text, file.path});
  return all;
}

std::string where(const std::string& name, const Told& told) {
  return name + "=" + excerpt(told.text) + " in " +
         (told.file.empty() ? "the environment" : excerpt(told.file));
}

std::string source_of(const Told& told) {
  return kFromEnvironment + (told.file.empty() ? "" : " (" + excerpt(told.file) + ")");
}

void forget(const SettingSpec& spec, Settings& settings) {
  if (is_from_environment(settings.source(spec.name))) settings.set(spec.name, spec.default_value, "default");
}

/// Takes the value of one variable; a line where that overrides what somebody has set.
std::optional<std::string> take(const Schema& schema, const SettingSpec& spec, const Told& told,
                                Settings& settings) {
  const Value before = settings.value(spec.name);
  const std::string source = settings.source(spec.name);
  const auto value = value_of_variable(schema, spec, told.text);
  if (value)
    settings.set(spec.name, *value, source_of(told));
  else
    settings.set(spec.name, spec.default_value,
                 source_of(told) + ", " + spec.variable + "=" + excerpt(told.text));
  if (source == "default" || is_from_environment(source) || (value && *value == before)) return std::nullopt;
  return where(spec.variable, told) + " overrides " + spec.name + " = " + to_text(before) + " (" + source +
         "); " +
         (told.file.empty() ? "unset it to let the setting count"
                            : "take that line out to let the setting count, or set " + spec.variable +
                                  " in the environment, which counts for more than the file");
}

}  // namespace

Environment environment_of_process() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (const auto equals = text.find('='); equals != std::string_view::npos)
      environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

bool is_from_environment(const std::string& source) {
  return source.starts_with(kFromEnvironment);
}

bool is_from_file(const std::string& source) {
  return source.starts_with(std::string(kFromEnvironment) + " (");
}

std::string with_library(const std::string& variable) {
  return (variable.starts_with("CUDA_") ? "CUDA's " : "NCCL's ") + variable;
}

std::optional<std::string> variable_text(const SettingSpec& spec, const Value& value) {
  if (spec.variable.empty() || value == spec.default_value) return std::nullopt;
  if (const auto* text = std::get_if<std::string>(&value)) {
    for (const auto& [choice, written] : spec.variable_values)
      if (choice == *text) return written;
    return *text;
  }
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "1" : "0";
  return to_text(value);
}

Result<Value> value_of_variable(const Schema& schema, const SettingSpec& spec, const std::string& text) {
  const auto same = [](char a, char b) { return std::toupper(static_cast<unsigned char>(a)) == b; };
  for (const auto& [choice, written] : spec.variable_values) {
    std::string upper = written;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (std::equal(text.begin(), text.end(), upper.begin(), upper.end(), same)) return Value(choice);
  }
  if (!spec.variable_values.empty())
    return fail(ErrorKind::usage, spec.variable + "=" + excerpt(text) + " is more than " + spec.name +
                                      " can say (" + allowed(spec) + ")");
  if (spec.type == Type::boolean && (text == "0" || text == "1")) return Value(text == "1");
  return schema.check_text(spec.name, text);
}

std::vector<std::string> take_environment(const Schema& schema, const Environment& environment,
                                          const std::vector<VariableFile>& files, Settings& settings) {
  const auto all = all_told(environment, files);
  std::vector<std::string> said;
  for (const auto& spec : schema.settings) {
    if (spec.variable.empty()) continue;
    const auto told = all.find(spec.variable);
    if (told == all.end() || told->second.text.empty())
      forget(spec, settings);
    else if (auto line = take(schema, spec, told->second, settings))
      said.push_back(*std::move(line));
  }
  for (const auto& [name, told] : all)
    for (const Hint& hint : schema.hints)
      if (hint.foreign && !told.text.empty() && hint.matches(name))
        said.push_back(where(name, told) + " does nothing here: " + name + " " + hint.text);
  return said;
}

std::vector<Variable> variables_to_set(const Schema& schema, const Settings& settings,
                                       const Environment& environment) {
  std::vector<Variable> variables;
  for (const auto& spec : schema.settings) {
    if (spec.applies != Applies::restart) continue;  // counts for more than what is said while the run runs
    if (is_from_file(settings.source(spec.name))) continue;
    const auto text = variable_text(spec, settings.value(spec.name));
    if (!text || set_in(environment, spec.variable) != nullptr) continue;
    variables.push_back({spec.variable, *text, spec.name, settings.source(spec.name)});
  }
  return variables;
}

}  // namespace footplate
