#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "protocol/json.h"
#include "protocol/result.h"

namespace footplate {

/// Type of a setting or of an action's parameter.
enum class Type {
  boolean,
  integer,  ///< 64-bit signed
  number,   ///< double
  string,
  choice,    ///< a string out of a fixed list
  numbers,   ///< a fixed-length list of doubles (betas)
  interval,  ///< a whole number of steps, or a time as text: "30m"
};

std::string_view to_string(Type type);
Result<Type> type_from_string(std::string_view text);

/// The value of a setting. Which alternative it holds follows from the setting's Type.
using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<double>>;

/// How often something is done: once in so many steps, or in so much time; never where both are 0.
struct Interval {
  std::int64_t steps = 0;
  double seconds = 0;

  bool is_ever() const { return steps > 0 || seconds > 0; }
  bool operator==(const Interval&) const = default;
};

/// The least and the longest time of an interval, in seconds.
inline constexpr double kShortestInterval = 1;
inline constexpr double kLongestInterval = 30 * 86400.0;

/// Of a value of Type::interval.
Interval interval_of(const Value& value);

Json to_json(const Value& value);

/// Reads `json` as a value of `type`. Integral floats pass as integers (10/2 is 5.0 in Lua); fractions,
/// NaN and infinity don't. Strings with units pass where `unit` says so: "30m" where it is "s",
/// "2GiB" where it is "bytes". The message names what was given and what is expected, not the setting.
Result<Value> value_from_json(const Json& json, Type type, std::string_view unit = {});

/// As shown to people and in Lua source: 0.001, true, "adamw", {0.9, 0.99}. Reads back exactly.
std::string to_text(const Value& value);

/// For people, in messages: strings without quotes, and the unit behind the number.
std::string display(const Value& value, std::string_view unit = {});

/// The shortest decimal text that reads back as the same double.
std::string shortest(double value);

/// What a user wrote, for quoting it in a message: cut where it is longer than anybody reads.
std::string excerpt(std::string_view text);

}  // namespace footplate
