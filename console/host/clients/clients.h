#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "console/host/clients/listener.h"
#include "console/host/run/host_state.h"
#include "console/host/scripts/client.h"

namespace footplate::host {

/// Everyone who is connected, and the socket that they come by. Takes in their lines and sends what they are
/// owed, a bounded share of each in a turn. One thread.
class Clients {
 public:
  /// A whole line of a client.
  using OnLine = std::function<void(Client& client, const std::string& line)>;

  /// `state` outlives it.
  explicit Clients(HostState& state) : state_(state) {}

  /// Opens the socket, or opens it again where it is gone: somebody may have cleared /tmp. Errors are logged;
  /// the next call tries again.
  void keep_listening();
  void stop_listening() { listener_.reset(); }
  int listener_fd() const { return listener_ ? listener_->fd() : -1; }
  /// Lets in whoever is at the socket, up to the limit.
  void accept();

  const std::vector<std::unique_ptr<Client>>& all() const { return clients_; }

  /// New sessions get other numbers than the one that gave this order to an earlier console: undo() is by
  /// them.
  void number_after(const Order& order);

  /// After poll() has said `revents` of the client's connection.
  void read(Client& client, short revents, const OnLine& on_line);

  /// Queues a message; one that is too long for a line becomes an error of the request `id`. A client that
  /// leaves too much unread is dropped.
  void send(Client& client, const Json& message, const Json& id = nullptr);
  /// Says that the request or chunk `id` of the client has failed; null: what has no id.
  void send_error(Client& client, const Json& id, const Error& error);

  /// Sends what is queued, and the events that the client has subscribed to.
  void flush(Client& client);

  /// Forgets those who are gone, or have had their last answer. A chunk that still runs is interrupted, and
  /// has some seconds to end.
  void drop_gone();

  /// Puts into the run's records that a person comes or goes. By way of rank 0, which keeps them.
  void record(const Client& client, ClientState state);

  /// Whether a turn has to follow at once: some have lines that nobody has looked at.
  bool have_more() const;
  /// Whether anybody has subscribed to events.
  bool have_readers() const;

 private:
  void lose(Client& client);
  void deliver_events(Client& client);
  void not_sent(Client& client, std::size_t bytes, const Json& id);

  HostState& state_;
  std::optional<Listener> listener_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::uint64_t last_client_ = 0;
};

}  // namespace footplate::host
