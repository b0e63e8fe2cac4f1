#include "console/report/recorded_settings_json.h"

#include <optional>

#include "protocol/json_fields.h"
#include "run_files/json_file.h"

namespace footplate::report {
namespace {

/// The type is what the JSON has. Whole numbers of a setting that may have others are integers then: compared
/// by what is shown of them.
std::optional<Value> recorded_value(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (const auto number = number_from_json(json)) return *number;
  if (json.is_string()) return json.get<std::string>();
  if (!json.is_array()) return std::nullopt;
  std::vector<double> numbers;
  for (const Json& one : json) {
    if (!one.is_number()) return std::nullopt;
    numbers.push_back(one.get<double>());
  }
  return numbers;
}

}  // namespace

RecordedSettings read_recorded_settings(const std::filesystem::path& path) {
  RecordedSettings settings;
  const auto json = read_json_file(path);
  if (!json || !json->is_object()) return settings;
  for (const auto& [name, entry] : json->items()) {
    const auto found = entry.is_object() ? entry.find("value") : entry.end();
    if (!entry.is_object() || found == entry.end()) continue;
    if (auto value = recorded_value(*found)) settings[name] = {*std::move(value), text_of(entry, "source")};
  }
  return settings;
}

RecordedSettings settings_of_values(const Json& json, const std::string& source) {
  RecordedSettings settings;
  if (!json.is_object()) return settings;
  for (const auto& [name, entry] : json.items())
    if (auto value = recorded_value(entry)) settings[name] = {*std::move(value), source};
  return settings;
}

}  // namespace footplate::report
