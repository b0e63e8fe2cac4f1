#include "console/lua/core/syntax_advice.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <regex>
#include <vector>

namespace footplate::lua {
namespace {

/// Longer lines aren't looked at: a regular expression needs stack for each character.
constexpr std::size_t kLongestLine = 300;

std::vector<std::string> lines_of(std::string_view code) {
  std::vector<std::string> lines;
  for (std::size_t start = 0; start <= code.size();) {
    const std::size_t end = std::min(code.find('\n', start), code.size());
    std::string line(code.substr(start, end - start));
    line.erase(std::min(line.find("--"), line.size()));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    lines.push_back(std::move(line));
    start = end + 1;
  }
  return lines;
}

/// The number behind the first ':'; 0: there is none.
std::size_t line_in(const std::string& message) {
  const auto colon = message.find(':');
  return colon == std::string::npos ? 0 : std::strtoul(message.c_str() + colon + 1, nullptr, 10);
}

/// The number of the last line before `line` that has something; 0: there is none.
std::size_t line_before(const std::vector<std::string>& lines, std::size_t line) {
  for (std::size_t before = line - 1; before > 0; --before)
    if (!lines[before - 1].empty()) return before;
  return 0;
}

std::string on_compound(const std::string& line) {
  static const std::regex kCompound(R"(([\w.]+)\s*([-+*/])=\s*(.*))");
  std::smatch found;
  if (!std::regex_search(line, found, kCompound)) return {};
  return "Lua has no '" + found.str(2) + "=': " + found.str(1) + " = " + found.str(1) + " " + found.str(2) +
         " " + found.str(3);
}

/// What other languages write, and Lua otherwise.
/// Only where Lua stumbles over its first character: it may stand in a text as well.
std::string on_foreign(const std::string& message, const std::string& line) {
  struct Foreign {
    const char* written;
    const char* lua;
  };
  constexpr std::array kForeign{Foreign{"!=", "~="}, Foreign{"&&", "and"}, Foreign{"||", "or"},
                                Foreign{"++", "x = x + 1"}};
  for (const Foreign& foreign : kForeign)
    if (line.find(foreign.written) != std::string::npos &&
        message.find(std::string("near '") + foreign.written[0]) != std::string::npos)
      return std::string("Lua writes '") + foreign.written + "' as " + foreign.lua;
  return {};
}

std::string on_other_format(const std::vector<std::string>& lines) {
  const auto first =
      std::find_if(lines.begin(), lines.end(), [](const std::string& line) { return !line.empty(); });
  if (first == lines.end() || first->size() > kLongestLine) return {};
  static const std::regex kYaml(R"(\s*[\w.-]+:(\s.*)?)");
  static const std::regex kToml(R"(\s*\[[\w.]+\]\s*)");
  const char* format = first->front() == '{' || first->front() == '[' ? "JSON" : nullptr;
  if (std::regex_match(*first, kToml)) format = "TOML";
  if (std::regex_match(*first, kYaml)) format = "YAML";
  if (format == nullptr) return {};
  return std::string("this looks like ") + format + ", and Lua is expected: train = { steps = 1000 }";
}

std::string advice(const std::string& message, std::string_view code) {
  const std::vector<std::string> lines = lines_of(code);
  const std::size_t number = line_in(message);
  if (number == 0 || number > lines.size() || lines[number - 1].size() > kLongestLine) return {};
  const std::string& line = lines[number - 1];
  if (std::string text = on_other_format(lines); !text.empty()) return text;
  if (std::string text = on_compound(line); !text.empty()) return text;
  const std::size_t before = line_before(lines, number);
  if (before != 0 && message.find("expected (to close '{'") != std::string::npos &&
      lines[before - 1].back() != ',' && lines[before - 1].back() != '{')
    return "line " + std::to_string(before) + " may lack a comma at its end";
  if (before != 0 && lines[before - 1].back() == ',' && message.find("near '='") != std::string::npos)
    return "line " + std::to_string(before) + " ends with a comma";
  return on_foreign(message, line);
}

}  // namespace

std::string with_syntax_advice(const std::string& message, std::string_view code) {
  const std::string text = advice(message, code);
  return text.empty() ? message : message + "; " + text;
}

}  // namespace footplate::lua
