#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace footplate {

/// Where a text of Lua ends that may be unfinished: what is typed there, and what it stands in.
struct TypedPlace {
  enum class Kind {
    code,
    string,   ///< a short one, not yet closed
    comment,  ///< or a long string
  };
  /// An open bracket and the word before it: {'{', "eval.now"} in "eval.now{ batches = ".
  struct Opener {
    char bracket = '(';
    std::string word;       ///< empty: none
    bool assigned = false;  ///< the word is a field: set = {
  };

  Kind kind = Kind::code;
  std::size_t start = 0;  ///< of the word, in bytes; in a string, behind its quote
  std::string word;
  std::vector<Opener> open;  ///< outermost first

  // Before the word.
  std::string assigned;  ///< "sched.kind" in "sched.kind = " and in "sched.kind == "; empty: neither
  char before = '\0';    ///< the last character that isn't a blank
  std::string call;      ///< in a string: the word before it, on("eval

  /// The word of the innermost bracket; empty: none is open.
  const Opener* innermost() const { return open.empty() ? nullptr : &open.back(); }
};

TypedPlace typed_place(std::string_view code);

}  // namespace footplate
