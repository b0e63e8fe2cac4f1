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
struct Foreign {
  const char* line;  ///< a regular expression that finds it in the line
  const char*
      message;  ///< what Lua says of it, where the line alone could mean something else; empty: anything
  const char* advice;
};
constexpr std::array kForeign{
    Foreign{"!=", "near '!", "Lua writes '!=' as ~="},
    Foreign{"&&", "near '&", "Lua writes '&&' as and"},
    Foreign{R"(\|\|)", "near '|", "Lua writes '||' as or"},
    Foreign{R"(\+\+)", "near '+", "Lua writes '++' as x = x + 1"},
    Foreign{R"(^\s*#)", "near '#", "a comment begins with --"},
    Foreign{"//", "near '//", "a comment begins with --"},
    Foreign{"\xE2\x80[\x98-\x9F]", "near '<", "these quotes are typographic: write \" or '"},
    Foreign{R"(=\s*\[)", "near '['", "a list is written { 0.9, 0.95 }"},
    Foreign{R"(^\s*(let|const|var)\s+\w)", "", "a name of your own is declared with local: local x = 5"},
    Foreign{":=", "", "Lua assigns with ="},
    Foreign{R"(^\s*[\w.]+\s*==)", "near '=='", "== compares; one = assigns"},
    Foreign{R"(^\s*(if|while|for)\b.*\{\s*)", "",
            "Lua has no braces here: if … then … end, while … do … end"},
    Foreign{R"(\{.*\w\s*:\s)", "", "in { } Lua writes steps = 5"},
    Foreign{R"(^\s*(import|from|include|using)\b)", "",
            "nothing is imported; configs merge as they are named, footplate run base.lua other.lua"},
    Foreign{R"(^\s*(def|fn|func)\s)", "", "a function is written local function f(x) … end"},
    Foreign{R"(\$)", "near '$",
            "the shell's variables aren't known here; give KEY=$VALUE on the command line"},
    Foreign{R"(\d_\d)", "malformed number", "a number has no '_': 2000"},
    Foreign{R"(\d[A-Za-z]+)", "malformed number", "a number with a unit is a text, in quotes: \"8h\""},
    Foreign{"", "unfinished string", "the quote that opens it isn't closed in this line"},
};

/// "log every 10"
std::string on_missing_signs(const std::string& line) {
  static const std::regex kHelp(R"(\s*help\s+([\w.]+)\s*)");
  if (std::smatch asked; std::regex_match(line, asked, kHelp)) return "write help(\"" + asked.str(1) + "\")";
  static const std::regex kWords(R"(\s*([a-z]+)[ .]([a-z_]+)\s+([-+.\w]+)\s*)");
  std::smatch found;
  if (!std::regex_match(line, found, kWords)) return {};
  return "write " + found.str(1) + "." + found.str(2) + " = " + found.str(3);
}

std::string on_foreign(const std::string& message, const std::string& line) {
  for (const Foreign& foreign : kForeign)
    if (message.find(foreign.message) != std::string::npos &&
        std::regex_search(line, std::regex(foreign.line)))
      return foreign.advice;
  return on_missing_signs(line);
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
  return std::string("this looks like ") + format + ", and Lua is expected: train.steps = 1000";
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

std::string surplus_value(std::string_view code) {
  // Within braces and brackets a comma parts fields and arguments.
  static const std::regex kTwoValues(R"(\s*(?:local\s+)?([\w.]+)\s*=\s*([-+.\w]+\s*,\s*[-+.\w]+).*)");
  int depth = 0;
  std::size_t number = 0;
  for (const std::string& line : lines_of(code)) {
    ++number;
    if (line.empty()) continue;
    std::smatch found;
    if (depth == 0 && line.size() <= kLongestLine && std::regex_match(line, found, kTwoValues))
      return std::to_string(number) + ": " + found.str(1) + " = " + found.str(2) +
             " gives two values to one name; a number has no comma, 2000, and a list is written { 0.9, 0.95 "
             "}";
    char quote = '\0';
    for (const char c : line) {
      if (quote != '\0' ? c == quote : c == '"' || c == '\'') quote = quote == '\0' ? c : '\0';
      if (quote != '\0') continue;
      depth += c == '{' || c == '(' || c == '[' ? 1 : c == '}' || c == ')' || c == ']' ? -1 : 0;
    }
  }
  return {};
}

}  // namespace footplate::lua
