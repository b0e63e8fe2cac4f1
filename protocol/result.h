#pragma once

#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace footplate {

/// What kind of thing went wrong; the command line maps each kind to its exit code (exit_codes.h).
enum class ErrorKind {
  usage,        ///< a bad name, value, configuration or command line
  script,       ///< Lua source that doesn't parse, raised an error or broke a limit
  unreachable,  ///< no such run, connection refused or lost
  refused,      ///< understood, and turned down (role, state, a rank said no)
  timed_out,    ///< no outcome within the time the caller gave
  failed,       ///< everything else: the operating system, a file, the run itself
  lost,         ///< a rank is gone, and what was under way with it came to nothing; recovery decides
};

/// An error for a person: what, where, what is allowed, the nearest name, what to try next.
struct Error {
  ErrorKind kind = ErrorKind::failed;
  std::string message;
};

/// What functions return that may fail in normal use.
template <class T>
using Result = tl::expected<T, Error>;

/// Shorthand for returning an error: `return fail(ErrorKind::usage, "...")`.
inline tl::unexpected<Error> fail(ErrorKind kind, std::string message) {
  return tl::unexpected<Error>(Error{kind, std::move(message)});
}

}  // namespace footplate
