#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "console/host/clients/clients.h"
#include "console/host/run/host_state.h"
#include "console/host/scripts/client.h"
#include "console/host/scripts/lua_process.h"

namespace footplate::host {

/// The Lua of clients: runs their chunks one after the other, and starts the processes for them. Owns a
/// process that is started ahead, so that a one-shot chunk needn't wait for it. One thread.
class Sessions {
 public:
  using Clock = std::chrono::steady_clock;

  /// What a client's chunk asks of the console (docs/protocol.md).
  using Ask = std::function<void(Client& client, const SessionRequest& request)>;

  /// `state`, `clients` and `reaper` outlive it.
  Sessions(HostState& state, Clients& clients, Reaper& reaper, Ask ask)
      : state_(state), clients_(clients), reaper_(reaper), ask_(std::move(ask)) {}

  /// Starts the client's next chunk, if none is running.
  void next_chunk(Client& client);

  /// What a Lua process hears first.
  SessionHello hello(const Client& client) const;
  /// A process that is nobody's yet. Errors: the operating system's.
  Result<std::unique_ptr<LuaProcess>> process();

  // The loop.
  /// When on_time() or keep_spare() has to be called; nothing: no moment is due.
  std::optional<Clock::time_point> deadline() const;
  void on_time();
  void keep_spare();
  void settings(const SettingsUpdate& update);  ///< changed; for all of them
  /// Those in which a chunk is running.
  std::vector<LuaSession*> running() const;
  void end(const Error& error);

 private:
  void make_lua(Client& client);

  HostState& state_;
  Clients& clients_;
  Reaper& reaper_;
  Ask ask_;
  std::unique_ptr<LuaProcess> spare_;
  Clock::time_point spare_due_{};
};

/// What sends the answer to request `id` to the process of `client` that asked, if that is still there.
Answer script_answer(Client& client, std::uint64_t id);
/// The same for notes on the way to it.
std::function<void(const OrderReport&)> script_note(Client& client, std::uint64_t id);

}  // namespace footplate::host
