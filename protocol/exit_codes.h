#pragma once

#include "protocol/result.h"

namespace footplate {

/// Exit codes of every program, as documented in docs/batch.md. 75 is sysexits' EX_TEMPFAIL.
enum class ExitCode : int {
  done = 0,         ///< done, or stopped because someone asked
  failed = 1,       ///< the run failed
  usage = 2,        ///< usage or configuration
  script = 3,       ///< error in a Lua chunk or job script
  unreachable = 4,  ///< can't connect, or connection lost
  refused = 5,      ///< the order was refused
  timed_out = 6,    ///< timed out waiting
  resumable = 75,   ///< stopped by a signal, a limit or a failure, and resumable
};

constexpr ExitCode exit_code_for(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return ExitCode::usage;
    case ErrorKind::script:
      return ExitCode::script;
    case ErrorKind::unreachable:
      return ExitCode::unreachable;
    case ErrorKind::refused:
      return ExitCode::refused;
    case ErrorKind::timed_out:
      return ExitCode::timed_out;
    case ErrorKind::failed:
      return ExitCode::failed;
    case ErrorKind::lost:
      return ExitCode::resumable;
  }
  return ExitCode::failed;
}

}  // namespace footplate
