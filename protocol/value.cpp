#include "protocol/value.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <utility>

namespace footplate {
namespace {

constexpr std::array<std::pair<Type, std::string_view>, 7> kTypeNames{{
    {Type::boolean, "boolean"},
    {Type::integer, "integer"},
    {Type::number, "number"},
    {Type::string, "string"},
    {Type::choice, "choice"},
    {Type::numbers, "list of numbers"},
    {Type::interval, "interval"},
}};

struct Suffix {
  std::string_view text;
  double factor;
};

constexpr std::array<Suffix, 5> kTimeSuffixes{{{"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}}};
constexpr std::array<Suffix, 8> kByteSuffixes{{{"KiB", 1024.0},
                                               {"MiB", 1048576.0},
                                               {"GiB", 1073741824.0},
                                               {"kB", 1e3},
                                               {"KB", 1e3},
                                               {"MB", 1e6},
                                               {"GB", 1e9},
                                               {"B", 1}}};

/// "30m" as 1800 where the unit is "s"; nothing where the text isn't a number with a known suffix.
std::optional<double> number_with_unit(const std::string& text, std::string_view unit) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || std::isnan(number)) return std::nullopt;
  const std::string_view rest(end);
  auto scaled = [&](const auto& suffixes) -> std::optional<double> {
    for (const auto& suffix : suffixes)
      if (rest == suffix.text) return number * suffix.factor;
    return std::nullopt;
  };
  if (unit == "s") return scaled(kTimeSuffixes);
  if (unit == "bytes") return scaled(kByteSuffixes);
  return std::nullopt;
}

std::string given(const Json& json) {
  switch (json.type()) {
    case Json::value_t::null:
      return "nil";
    case Json::value_t::object:
      return "a table";
    case Json::value_t::array:
      return "a list of " + std::to_string(json.size());
    case Json::value_t::string: {
      if (const auto special = number_from_json(json))
        return std::isnan(*special) ? "NaN" : *special > 0 ? "infinity" : "-infinity";
      std::string quoted = to_line(excerpt(json.get_ref<const std::string&>()));
      quoted.pop_back();  // the newline
      return "the string " + quoted;
    }
    case Json::value_t::number_float:
      return shortest(json.get<double>());
    default:
      return json.dump();
  }
}

/// Of a text where a number is expected, the number that is meant; empty: nobody knows.
std::string meant_number(const Json& json) {
  if (!json.is_string()) return {};
  const std::string text = json.get<std::string>();
  if (text.empty()) return "; nothing is given";
  if (text.front() == '=') return "; one '=' is enough";
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return {};
  if (rest == end)
    return (shortest(number) == text ? "; without quotes it is a number: " : "; write ") + shortest(number);
  const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
  for (const auto& [letters, factor] : {std::pair{"kK", 1e3}, std::pair{"mM", 1e6}, std::pair{"gGbB", 1e9}})
    if (suffix.size() == 1 && std::string_view(letters).find(suffix) != std::string_view::npos)
      return "; write it out: " + shortest(number * factor);
  return {};
}

Result<double> finite_number(const Json& json, std::string_view unit) {
  std::optional<double> number = number_from_json(json);
  if (!number && json.is_string()) number = number_with_unit(json.get<std::string>(), unit);
  if (number && std::isfinite(*number)) return *number;
  const char* example = !json.is_string() ? ""
                        : unit == "s"     ? R"(; with a unit it is "90s", "30m", "2h" or "1d")"
                        : unit == "bytes" ? R"(; with a unit it is "64KiB", "8MiB" or "2GiB")"
                                          : "";
  const std::string meant = *example == '\0' ? meant_number(json) : std::string();
  return fail(ErrorKind::usage, "expects a number, got " + given(json) + example + meant);
}

Result<Value> interval_from_json(const Json& json) {
  if (!json.is_string() || number_from_json(json)) {
    auto steps = value_from_json(json, Type::integer);
    if (steps) return steps;
    return fail(ErrorKind::usage, steps.error().message + R"(; or a time: "90s", "30m", "2h")");
  }
  const auto& text = json.get_ref<const std::string&>();
  const auto seconds = number_with_unit(text, "s");
  if (!seconds)
    return fail(ErrorKind::usage, "expects a whole number of steps or a time, got " + given(json) +
                                      R"(; a time is "90s", "30m", "2h" or "1d")" + meant_number(json));
  if (*seconds < kShortestInterval || *seconds > kLongestInterval)
    return fail(ErrorKind::usage, "can't be " + text + "; a time is at least 1s and at most 30d");
  return Value(text);
}

}  // namespace

Interval interval_of(const Value& value) {
  if (const auto* steps = std::get_if<std::int64_t>(&value)) return {*steps, 0};
  if (const auto* text = std::get_if<std::string>(&value))
    return {0, number_with_unit(*text, "s").value_or(0)};
  return {};
}

std::string_view to_string(Type type) {
  for (const auto& [value, name] : kTypeNames)
    if (value == type) return name;
  return "?";
}

Result<Type> type_from_string(std::string_view text) {
  for (const auto& [value, name] : kTypeNames)
    if (name == text) return value;
  return fail(ErrorKind::failed, "unknown type '" + std::string(text) + "'");
}

Json to_json(const Value& value) {
  return std::visit(
      [](const auto& held) -> Json {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, double>) {
          return number_to_json(held);
        } else if constexpr (std::is_same_v<T, std::vector<double>>) {
          Json list = Json::array();
          for (const double number : held) list.push_back(number_to_json(number));
          return list;
        } else {
          return held;
        }
      },
      value);
}

Result<Value> value_from_json(const Json& json, Type type, std::string_view unit) {
  switch (type) {
    case Type::boolean:
      if (json.is_boolean()) return Value(json.get<bool>());
      return fail(ErrorKind::usage, "expects true or false, got " + given(json));
    case Type::integer: {
      if (json.is_number_integer()) {
        constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
        if (json.is_number_unsigned() && json.get<std::uint64_t>() > kMax)
          return fail(ErrorKind::usage, "expects a whole number of at most 64 bits, got " + json.dump());
        return Value(json.get<std::int64_t>());
      }
      const auto number = finite_number(json, unit);
      constexpr double kExact = 9007199254740992.0;  // 2^53: beyond it doubles skip integers
      if (!number || *number != std::floor(*number) || std::abs(*number) > kExact)
        return fail(ErrorKind::usage, "expects a whole number, got " + given(json) + meant_number(json));
      return Value(static_cast<std::int64_t>(*number));
    }
    case Type::number: {
      const auto number = finite_number(json, unit);
      if (!number) return tl::unexpected(number.error());
      return Value(*number);
    }
    case Type::string:
    case Type::choice:
      if (json.is_string()) return Value(json.get<std::string>());
      return fail(ErrorKind::usage, "expects a string, got " + given(json));
    case Type::numbers: {
      if (!json.is_array()) return fail(ErrorKind::usage, "expects a list of numbers, got " + given(json));
      std::vector<double> list;
      for (const auto& item : json) {
        const auto number = finite_number(item, unit);
        if (!number) return tl::unexpected(number.error());
        list.push_back(*number);
      }
      return Value(std::move(list));
    }
    case Type::interval:
      return interval_from_json(json);
  }
  return fail(ErrorKind::failed, "unknown type");
}

std::string shortest(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), end.ptr);
  // "1e-08" as people write it: "1e-8".
  const auto exponent = text.find('e');
  if (exponent != std::string::npos && text[exponent + 2] == '0') text.erase(exponent + 2, 1);
  return text;
}

std::string to_text(const Value& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, bool>) {
          return held ? "true" : "false";
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          return std::to_string(held);
        } else if constexpr (std::is_same_v<T, double>) {
          return shortest(held);
        } else if constexpr (std::is_same_v<T, std::string>) {
          std::string text = "\"";
          for (const char c : held) {
            if (c == '"' || c == '\\') text += '\\';
            if (c == '\n')
              text += "\\n";
            else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
              text += "\\x" + std::string{"0123456789abcdef"[(c >> 4) & 15], "0123456789abcdef"[c & 15]};
            else
              text += c;
          }
          return text + "\"";
        } else {
          std::string text = "{";
          for (std::size_t i = 0; i < held.size(); ++i) text += (i ? ", " : "") + shortest(held[i]);
          return text + "}";
        }
      },
      value);
}

std::string display(const Value& value, std::string_view unit) {
  std::string text =
      std::holds_alternative<std::string>(value) ? std::get<std::string>(value) : to_text(value);
  if (text.empty()) text = "\"\"";
  if (!unit.empty() && !std::holds_alternative<std::string>(value)) text += " " + std::string(unit);
  return text;
}

std::string excerpt(std::string_view text) {
  constexpr std::size_t kMostBytes = 80;
  if (text.size() <= kMostBytes) return std::string(text);
  std::size_t end = kMostBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // not inside a character
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace footplate
