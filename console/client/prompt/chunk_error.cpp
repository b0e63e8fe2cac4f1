#include "console/client/prompt/chunk_error.h"

#include <algorithm>

#include "console/client/render/text.h"

namespace footplate {
namespace {

constexpr std::size_t kLongestShown = 200;  ///< bytes of the quoted line

std::string line_of(const std::string& code, std::int64_t number) {
  std::size_t start = 0;
  for (; number > 1 && start != std::string::npos; --number) {
    start = code.find('\n', start);
    if (start != std::string::npos) ++start;
  }
  return start == std::string::npos ? "" : code.substr(start, code.find('\n', start) - start);
}

/// The first thing in quotes that a message has and the line as well: {its place, its length}.
std::pair<std::size_t, std::size_t> place_of(const std::string& message, const std::string& line) {
  for (std::size_t open = message.find('\''); open != std::string::npos;
       open = message.find('\'', open + 1)) {
    const std::size_t close = message.find('\'', open + 1);
    if (close == std::string::npos) break;
    const std::string quoted = message.substr(open + 1, close - open - 1);
    const std::size_t at = quoted.empty() ? std::string::npos : line.find(quoted);
    if (at != std::string::npos) return {at, quoted.size()};
  }
  return {std::string::npos, 0};
}

}  // namespace

std::string chunk_error_text(const Error& error, std::int64_t line, const std::string& code) {
  const std::string& message = error.message;
  const std::string prefix = std::string(kChunkName) + ":" + std::to_string(line) + ": ";
  const bool located = line > 0 && message.starts_with(prefix);
  const std::string words = located ? message.substr(prefix.size()) : message;
  const bool several = code.find('\n') != std::string::npos;
  std::string text = "error: " + (located && several ? "line " + std::to_string(line) + ": " : "") + words;
  const std::string source = located ? line_of(code, line) : "";
  if (source.empty() || source.size() > kLongestShown) return text;
  const auto [at, length] = place_of(words, source);
  if (at == std::string::npos && !several) return text;
  text += "\n  " + source;
  if (at == std::string::npos) return text;
  std::size_t before = 0;
  for (const wchar_t c : wide(source.substr(0, at))) before += static_cast<std::size_t>(columns(c));
  return text + "\n  " + std::string(before, ' ') + std::string(std::max<std::size_t>(1, length), '^');
}

}  // namespace footplate
