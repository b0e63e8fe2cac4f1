#include "console/lua/reference/typed_place.h"

#include <algorithm>

namespace footplate {
namespace {

bool is_of_name(char c) {
  return c == '_' || c == '.' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

std::string_view trimmed_end(std::string_view code) {
  while (!code.empty() && (code.back() == ' ' || code.back() == '\t' || code.back() == '\n'))
    code.remove_suffix(1);
  return code;
}

/// The name that `code` ends in.
std::string last_word(std::string_view code) {
  code = trimmed_end(code);
  std::size_t start = code.size();
  while (start > 0 && is_of_name(code[start - 1])) --start;
  return std::string(code.substr(start));
}

/// The name before "=", "==" or "~=" at the end of `code`; empty: none of them is there.
std::string assigned_before(std::string_view code) {
  code = trimmed_end(code);
  if (!code.ends_with('=')) return {};
  code.remove_suffix(1);
  if (code.ends_with('=') || code.ends_with('~')) code.remove_suffix(1);
  return last_word(code);
}

/// Goes over Lua from the left, and keeps what is open.
class PlaceScanner {
 public:
  explicit PlaceScanner(std::string_view code) : code_(code) {}

  TypedPlace scan() {
    while (at_ < code_.size()) step();
    if (place_.kind == TypedPlace::Kind::code) {
      place_.start = code_.size();
      while (place_.start > 0 && is_of_name(code_[place_.start - 1])) --place_.start;
    }
    place_.word = std::string(code_.substr(place_.start));
    const bool quoted = place_.kind == TypedPlace::Kind::string;
    const std::string_view before = trimmed_end(code_.substr(0, place_.start - (quoted ? 1 : 0)));
    place_.before = before.empty() ? '\0' : before.back();
    place_.assigned = assigned_before(before);
    const bool in_bracket = place_.before == '(' || place_.before == '[';
    if (quoted) place_.call = last_word(in_bracket ? before.substr(0, before.size() - 1) : before);
    return std::move(place_);
  }

 private:
  bool here(std::string_view text) const { return code_.substr(at_, text.size()) == text; }

  /// Past a short string that begins here, unless the text ends in it.
  void quoted() {
    const char quote = code_[at_];
    std::size_t end = at_ + 1;
    for (; end < code_.size() && code_[end] != quote && code_[end] != '\n'; ++end)
      if (code_[end] == '\\') ++end;
    if (end >= code_.size()) {
      place_.kind = TypedPlace::Kind::string;
      place_.start = at_ + 1;
    }
    at_ = end + 1;
  }

  /// Past a long string, or to `end` of a comment of one line; not where the text ends in it.
  void skip_to(std::size_t found, std::size_t length) {
    if (found == std::string_view::npos) {
      place_.kind = TypedPlace::Kind::comment;
      place_.start = code_.size();
      at_ = code_.size();
    } else {
      at_ = found + length;
    }
  }

  void step() {
    const char c = code_[at_];
    if (here("--[[")) return skip_to(code_.find("]]", at_), 2);
    if (here("--")) return skip_to(code_.find('\n', at_), 1);
    if (here("[[")) return skip_to(code_.find("]]", at_), 2);
    if (c == '"' || c == '\'') return quoted();
    if (c == '{' || c == '(' || c == '[') {
      const std::string_view before = trimmed_end(code_.substr(0, at_));
      const std::string assigned = assigned_before(before);
      place_.open.push_back({c, assigned.empty() ? last_word(before) : assigned, !assigned.empty()});
    }
    if ((c == '}' || c == ')' || c == ']') && !place_.open.empty()) place_.open.pop_back();
    ++at_;
  }

  std::string_view code_;
  TypedPlace place_;
  std::size_t at_ = 0;
};

}  // namespace

TypedPlace typed_place(std::string_view code) {
  return PlaceScanner(code).scan();
}

}  // namespace footplate
