#include "console/lua/config/journal_reader.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "console/lua/config/bounded_state.h"
#include "console/lua/config/recorder.h"
#include "protocol/json.h"

namespace footplate {
namespace {

/// An entry takes some twenty instructions and a few hundred bytes of Lua for its hundred bytes of text.
constexpr std::size_t kMemoryPerByte = 100;
constexpr std::size_t kInstructionsPerByte = 10;
constexpr std::size_t kLeastMemory = 16 << 20;
constexpr std::size_t kLeastInstructions = 1'000'000;
constexpr double kProcessor_s = 60;   ///< for one piece
constexpr int kMostEntries = 20'000;  ///< of a piece
constexpr std::string_view kStart = "-- start ";
constexpr std::string_view kOrder = "-- order ";
constexpr std::string_view kSource = "--   ";
constexpr std::string_view kBetween = " · ";

/// What the comments before an at() say.
struct Heading {
  std::uint64_t id = 0;
  std::string user;
  std::string session;
  std::string source;
  std::size_t part = 0;
};

struct Comments {
  std::vector<std::string> starts;  ///< by part
  std::map<int, Heading> by_line;   ///< line of the at()
};

/// `rest` up to the next " · ", which is cut off it with the separator.
std::string take_field(std::string_view& rest) {
  const auto end = rest.find(kBetween);
  const std::string field(rest.substr(0, end));
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + kBetween.size());
  return field;
}

Heading heading_of(std::string_view line, std::size_t part) {
  std::string_view rest = line.substr(kOrder.size());
  Heading heading;
  const std::string id = take_field(rest);
  std::from_chars(id.data(), id.data() + id.size(), heading.id);
  heading.user = take_field(rest);
  heading.session = take_field(rest);
  heading.part = part;
  return heading;
}

/// "-- start "2026-11-21T09:00:00Z" of run t": the quoted word.
std::string start_of(std::string_view line) {
  const auto open = line.find('"');
  const auto close = open == std::string_view::npos ? open : line.find('"', open + 1);
  return close == std::string_view::npos ? "" : std::string(line.substr(open + 1, close - open - 1));
}

Comments read_comments(const std::string& text) {
  Comments comments;
  comments.starts.emplace_back();  // what stands before the first start: nothing, in a journal of ours
  Heading heading;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.starts_with(kStart)) {
      comments.starts.push_back(start_of(line));
    } else if (line.starts_with(kOrder)) {
      heading = heading_of(line, comments.starts.size() - 1);
    } else if (line.starts_with(kSource)) {
      heading.source += (heading.source.empty() ? "" : "\n") + line.substr(kSource.size());
    } else if (line.starts_with("at(")) {
      comments.by_line[number] = std::exchange(heading, Heading{});
    }
  }
  return comments;
}

/// A journal in pieces of so many entries: an entry with calls is a function, and Lua takes 131,071 of them
/// in one chunk. Each piece has as many empty lines before it as there are lines before it, so that what Lua
/// says of a line is of the journal's.
/// `run` has each; its first error ends it.
template <class Run>
Result<void> in_pieces(const std::string& text, const Run& run) {
  std::size_t begin = 0, lines = 0, lines_before = 0;
  int entries = 0;
  for (std::size_t at = 0; at < text.size(); ++lines) {
    if (text.compare(at, kOrder.size(), kOrder) == 0 && entries++ == kMostEntries) {
      if (auto ran = run(std::string(lines_before, '\n') + text.substr(begin, at - begin)); !ran) return ran;
      begin = at;
      lines_before = lines;
      entries = 1;
    }
    const std::size_t end = text.find('\n', at);
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return run(std::string(lines_before, '\n') + text.substr(begin));
}

}  // namespace

Result<std::vector<JournalPart>> read_journal_text(std::string text, const std::string& shown_as,
                                                   const Schema& schema) {
  text.erase(text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1);
  const Comments comments = read_comments(text);
  Recording recording{.schema = schema, .orders = {}, .lines = {}};
  const std::size_t instructions = kLeastInstructions + kInstructionsPerByte * text.size();
  BoundedState state(kLeastMemory + kMemoryPerByte * text.size(),
                     static_cast<int>(std::min<std::size_t>(instructions, std::numeric_limits<int>::max())),
                     kProcessor_s);
  const auto ran = in_pieces(text, [&](const std::string& piece) {
    return state.run(piece, [&](lua_State* lua) { install_recorder(lua, recording); });
  });
  if (!ran) return fail(ErrorKind::usage, shown_as + ": " + ran.error().message);

  std::vector<JournalPart> parts;
  for (const auto& start : comments.starts) parts.push_back({start, {}});
  auto gone = recording.gone.begin();  // in the order of the orders
  for (std::size_t i = 0; i < recording.orders.size(); ++i) {
    Order& order = recording.orders[i];
    const auto found = comments.by_line.find(recording.lines[i]);
    if (found == comments.by_line.end() || found->second.id == 0)
      return fail(ErrorKind::usage, shown_as + ":" + std::to_string(recording.lines[i]) +
                                        ": an at() without its comment '-- order N · user · session'");
    const Heading& heading = found->second;
    order.id = heading.id;
    order.user = heading.user;
    order.session = heading.session;
    order.source = heading.source;
    for (; gone != recording.gone.end() && gone->order == i; ++gone)
      parts[heading.part].gone.push_back({order.id, *order.at_step, gone->name, gone->value});
    parts[heading.part].orders.push_back(std::move(order));
  }
  return parts;
}

Result<std::vector<JournalPart>> read_journal(const std::filesystem::path& path, const Schema& schema) {
  std::error_code missing;
  if (!std::filesystem::exists(path, missing)) return std::vector<JournalPart>{};
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || !text) return fail(ErrorKind::usage, "can't read " + path.string());
  return read_journal_text(text.str(), path.string(), schema);
}

}  // namespace footplate
