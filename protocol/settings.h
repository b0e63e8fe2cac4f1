#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/messages/enum_words.h"
#include "protocol/schema.h"
#include "protocol/value.h"

namespace footplate {

/// Where a value comes from. Shown by settings(), kept in config-K.json.
struct Setting {
  Value value;
  std::string source =
      "default";  ///< "default", a config's path, "command line", "checkpoint", "order 12 (ann)"
};

inline constexpr const char* kCommandLine = "command line";
inline constexpr const char* kComputed = "computed";  ///< from other settings

/// The source of what the command line of an earlier start set: "command line of start 2".
std::string command_line_of(int start);

/// The start whose command line a source names; the largest int where it is this one's. 0: another source.
int start_of_command_line(std::string_view source);

/// A complete set of values, one for every setting of a schema. A plain value: copy it to share it
/// between threads.
class Settings {
 public:
  /// All defaults of `schema`.
  static Settings defaults(const Schema& schema);

  /// These values as settings of `schema`: what only that one has gets its default, what it lacks is left
  /// out.
  Settings for_schema(const Schema& schema) const;

  bool has(std::string_view name) const;
  const Value& value(std::string_view name) const;  ///< programming error if the name is unknown
  const std::string& source(std::string_view name) const;
  void set(std::string_view name, Value value, std::string source);

  /// Typed reads; the wrong type is a programming error.
  bool boolean(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;
  const std::string& string(std::string_view name) const;
  const std::vector<double>& numbers(std::string_view name) const;
  Interval interval(std::string_view name) const;

  const std::map<std::string, Setting, std::less<>>& all() const { return entries_; }

  /// Hash over names and values of all settings that are not computed, the same on every rank that
  /// holds the same values. Sources don't enter. 16 hexadecimal digits (XXH3).
  std::string digest(const Schema& schema) const;

  /// {"log.every": {"value": 10, "source": "default"}, …}
  Json to_json() const;
  /// Reads what to_json wrote, checked against `schema`; settings that are missing get their default,
  /// names that the schema doesn't know are an error.
  static Result<Settings> from_json(const Json& json, const Schema& schema);
  /// The text that `name` has in what to_json wrote, before it is known which schema that belongs to;
  /// `otherwise` where there is none.
  static std::string text_in(const Json& json, const std::string& name, const std::string& otherwise);

 private:
  std::map<std::string, Setting, std::less<>> entries_;
};

/// The choice in force; the schema knows no other words.
template <Worded Choice>
Choice choice_of(const Settings& settings, std::string_view name) {
  return from_word<Choice>(settings.string(name)).value_or(Choice{});
}

}  // namespace footplate
