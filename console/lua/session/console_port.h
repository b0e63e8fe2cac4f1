#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/messages/session_messages.h"

namespace footplate::lua {

/// The console as a session's Lua sees it: descriptor 3 in footplate-lua, a fake in tests. One thread.
class ConsoleLink {
 public:
  virtual ~ConsoleLink() = default;

  using Note = std::function<void(const OrderReport& report)>;
  using Time = std::chrono::steady_clock::duration;

  /// One request of docs/protocol.md ("The console and a session's Lua process"), blocking until its
  /// answer; `note` is called for reports that come before it. An interrupt ends the wait with an error,
  /// and interrupted() is true from then on.
  /// `left`: the asking counts as running time, and ends with an error once that time is over. Without it a
  /// wait counts as none.
  virtual Result<Json> ask(std::string_view op, Json fields, const Note& note = {},
                           std::optional<Time> left = {}) = 0;

  /// What the chunk printed, or what footplate says about it (`talk`).
  virtual void output(std::string_view text, OutputStream stream) = 0;

  /// Whether someone asked to stop the running chunk. Cheap enough for a hook every 10,000 instructions.
  virtual bool interrupted() = 0;

  /// A new chunk starts, or an error is being cleaned up after: earlier interrupts are forgotten.
  virtual void clear_interrupt() = 0;
};

}  // namespace footplate::lua
