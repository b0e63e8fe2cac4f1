#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

#include "protocol/messages/session_messages.h"

namespace footplate::host {

/// What clients and scripts may use. Each can be changed by `--limit NAME=NUMBER` (for tests, and for
/// people who know why); the name is the field's. Sizes are in bytes, times in seconds.
struct Limits {
  double chunk_s = 10;       ///< running time of a chunk of Lua; waiting isn't counted
  double kill_s = 0.25;      ///< from a chunk's end of time, or an interrupt, to SIGKILL
  double idle_cpu_s = 0.05;  ///< processor time after which a session's chunks run at idle priority
  double silent_s = 0.9;     ///< rank 0 unheard of for longer is named as stalled
  double clients = 16;
  double requests = 64;                  ///< unanswered ones of a client
  double chunk_bytes = 256.0 * 1024;     ///< of Lua source
  double output_bytes = 1024.0 * 1024;   ///< printed by one chunk
  double memory_bytes = 64.0 * 1048576;  ///< of a session's Lua state
  double unread_bytes = 8.0 * 1048576;   ///< left unread by a client before it is disconnected
  double events = 10'000;                ///< kept for clients that read slowly or come back
  double event_bytes = 8.0 * 1048576;    ///< of the lines of those, whatever their number

  /// "chunk_s=0.5". Errors: unknown name (with the nearest), not a positive number.
  Result<void> set(std::string_view assignment);

  /// What clients are told in their hello.
  Json to_json() const;
  /// What Lua processes are told.
  SessionLimits of_session() const;
};

}  // namespace footplate::host
