#include "protocol/settings.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <limits>
#include <stdexcept>

namespace footplate {
namespace {

constexpr std::string_view kCommandLineOf = "command line of start ";

const Setting& entry(const std::map<std::string, Setting, std::less<>>& entries, std::string_view name) {
  const auto found = entries.find(name);
  if (found == entries.end()) throw std::logic_error("no setting named " + std::string(name));
  return found->second;
}

}  // namespace

std::string command_line_of(int start) {
  return std::string(kCommandLineOf) + std::to_string(start);
}

int start_of_command_line(std::string_view source) {
  if (source == kCommandLine) return std::numeric_limits<int>::max();
  int start = 0;
  if (source.starts_with(kCommandLineOf))
    std::from_chars(source.data() + kCommandLineOf.size(), source.data() + source.size(), start);
  return start;
}

Settings Settings::defaults(const Schema& schema) {
  Settings settings;
  for (const auto& spec : schema.settings) settings.entries_[spec.name] = {spec.default_value, "default"};
  return settings;
}

Settings Settings::for_schema(const Schema& schema) const {
  Settings settings = defaults(schema);
  for (auto& [name, setting] : settings.entries_)
    if (const auto mine = entries_.find(name); mine != entries_.end()) setting = mine->second;
  return settings;
}

bool Settings::has(std::string_view name) const {
  return entries_.find(name) != entries_.end();
}
const Value& Settings::value(std::string_view name) const {
  return entry(entries_, name).value;
}
const std::string& Settings::source(std::string_view name) const {
  return entry(entries_, name).source;
}

void Settings::set(std::string_view name, Value value, std::string source) {
  entries_[std::string(name)] = {std::move(value), std::move(source)};
}

bool Settings::boolean(std::string_view name) const {
  return std::get<bool>(value(name));
}
std::int64_t Settings::integer(std::string_view name) const {
  return std::get<std::int64_t>(value(name));
}
double Settings::number(std::string_view name) const {
  return std::get<double>(value(name));
}
const std::string& Settings::string(std::string_view name) const {
  return std::get<std::string>(value(name));
}
Interval Settings::interval(std::string_view name) const {
  return interval_of(value(name));
}

const std::vector<double>& Settings::numbers(std::string_view name) const {
  return std::get<std::vector<double>>(value(name));
}

std::string Settings::digest(const Schema& schema) const {
  std::string text;
  for (const auto& [name, setting] : entries_) {
    const SettingSpec* spec = schema.setting(name);
    if (spec == nullptr || !spec->knobs.empty()) continue;
    text += name + "=" + to_text(setting.value) + "\n";
  }
  std::array<char, 17> hex{};
  std::snprintf(hex.data(), hex.size(), "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return std::string(hex.data());
}

Json Settings::to_json() const {
  Json json = Json::object();
  for (const auto& [name, setting] : entries_)
    json[name] = {{"value", footplate::to_json(setting.value)}, {"source", setting.source}};
  return json;
}

Result<Settings> Settings::from_json(const Json& json, const Schema& schema) {
  if (!json.is_object()) return fail(ErrorKind::usage, "settings have to be an object");
  Settings settings = defaults(schema);
  for (const auto& [name, item] : json.items()) {
    if (!item.is_object() || !item.contains("value"))
      return fail(ErrorKind::usage, "setting '" + excerpt(name) + "' has no value");
    if (item.contains("source") && !item["source"].is_string())
      return fail(ErrorKind::usage, "setting '" + excerpt(name) + "' has a source that isn't a string");
    auto value = schema.check(name, item["value"]);
    if (!value) return tl::unexpected(value.error());
    settings.set(name, *std::move(value), item.value("source", "default"));
  }
  return settings;
}

std::string Settings::text_in(const Json& json, const std::string& name, const std::string& otherwise) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_object()) return otherwise;
  const auto value = found->find("value");
  return value != found->end() && value->is_string() ? value->get<std::string>() : otherwise;
}

}  // namespace footplate
