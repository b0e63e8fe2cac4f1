#include "console/host/clients/clients.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <string>

namespace footplate::host {
namespace {

constexpr std::size_t kEventsAhead =
    256U * 1024;                 ///< unsent bytes of a client beyond which events stay in the ring
constexpr int kLinesATurn = 64;  ///< of one client
/// The chunk of a client that is gone may withdraw an order, which takes 6 s at most.
constexpr std::chrono::seconds kLastChunk{8};

}  // namespace

void Clients::keep_listening() {
  if (listener_ && listener_->in_place()) return;
  listener_.reset();
  auto path = Listener::path_for(state_.view.run());
  auto listener = path ? Listener::open(*path) : tl::unexpected(path.error());
  if (listener)
    listener_.emplace(*std::move(listener));
  else
    spdlog::error("no socket, tried again every second: {}", listener.error().message);
}

void Clients::number_after(const Order& order) {
  std::uint64_t number = 0;
  const char* const end = order.session.data() + order.session.size();
  if (!order.session.starts_with('s')) return;
  const auto read = std::from_chars(order.session.data() + 1, end, number);
  if (read.ec == std::errc() && read.ptr == end) last_client_ = std::max(last_client_, number);
}

void Clients::accept() {
  Accepted accepted = listener_->accept();
  if (!accepted.fd) return;
  auto client = std::make_unique<Client>(
      ++last_client_,
      Connection(std::move(accepted.fd), static_cast<std::size_t>(state_.options.limits.unread_bytes)));
  client->user = accepted.user;
  client->role = state_.options.role;
  if (clients_.size() >= static_cast<std::size_t>(state_.options.limits.clients)) {
    const Error full{ErrorKind::refused, std::to_string(clients_.size()) +
                                             " clients are connected already, the most there may be"};
    send_error(*client, nullptr, full);
    client->connection.flush();
    return;
  }
  send(*client, {{"type", "hello"},
                 {"product", "footplate"},
                 {"protocol", kProtocolVersion},
                 {"run", to_json(state_.view.run())},
                 {"session", client->session},
                 {"role", to_string(client->role)},
                 {"limits", state_.options.limits.to_json()}});
  clients_.push_back(std::move(client));
}

void Clients::read(Client& client, short revents, const OnLine& on_line) {
  if ((revents & (POLLHUP | POLLERR)) != 0 && (revents & POLLIN) == 0) client.gone = true;
  // Nothing more where whole lines wait already: who sends faster than it is served fills its own socket.
  if ((revents & POLLIN) != 0 && !client.has_more && client.connection.read() == Connection::Read::end) {
    // Half-closed (echo … | socat): answers are still wanted. A peer that is gone altogether shows as
    // POLLHUP.
    client.connection.stop_reading();
    if ((revents & POLLHUP) != 0) client.gone = true;
  }
  client.has_more = false;
  for (int lines = 0; !client.gone && !client.leaving; ++lines) {
    if (lines == kLinesATurn) {
      client.has_more = true;
      break;
    }
    auto line = client.connection.next_line();
    if (!line) {
      send_error(client, nullptr, line.error());
      client.leaving = true;
      client.connection.stop_reading();
    } else if (!*line) {
      break;
    } else {
      on_line(client, **line);
      // After a bye nothing is taken any more, and nothing that comes all the same is kept.
      if (client.leaving) client.connection.stop_reading();
    }
  }
}

void Clients::send(Client& client, const Json& message, const Json& id) {
  if (client.gone || client.connection.send(message)) return;
  not_sent(client, to_line(message).size(), id);
}

void Clients::send_error(Client& client, const Json& id, const Error& error) {
  send(client, {{"type", "error"}, {"id", id}, {"error", to_json(error)}}, id);
}

void Clients::not_sent(Client& client, std::size_t bytes, const Json& id) {
  const auto limit = static_cast<std::size_t>(state_.options.limits.unread_bytes);
  if (bytes <= kMaxFrameBytes && client.connection.unsent() + kMaxFrameBytes > limit) {
    spdlog::info("{} left {} bytes unread: disconnected", client.session, client.connection.unsent());
    client.gone = true;
    return;
  }
  const Error error{ErrorKind::failed, "the answer is longer than a line of 1 MiB; ask for less"};
  client.connection.send({{"type", "error"}, {"id", id}, {"error", to_json(error)}});
}

void Clients::flush(Client& client) {
  deliver_events(client);
  if (!client.connection.flush()) client.gone = true;
}

void Clients::deliver_events(Client& client) {
  while (client.reader && !client.gone && client.connection.unsent() < kEventsAhead) {
    const auto line = state_.ring.next_for(*client.reader);
    if (!line) return;
    if (!client.connection.send_line(*line)) not_sent(client, line->size(), Json());
  }
}

void Clients::drop_gone() {
  for (auto& client : clients_) {
    const bool idle = client->open_requests == 0 && !client->has_more && client->connection.unsent() == 0;
    if (idle && (client->leaving || (!client->connection.reading() && !client->reader))) client->gone = true;
    if (client->gone && !client->drop_at) lose(*client);
  }
  std::erase_if(clients_, [this](const auto& client) {
    const bool runs = client->lua && client->lua->busy();
    if (!client->gone || (runs && state_.now < *client->drop_at)) return false;
    state_.waits.forget(client->id);
    return true;
  });
}

/// Its chunk ends as by Ctrl-C, and isn't killed: it may have something to put back.
void Clients::lose(Client& client) {
  client.drop_at = state_.now + kLastChunk;
  client.connection.close();
  client.evals.clear();
  client.has_more = false;
  client.reader.reset();
  if (client.attached_from) record(client, ClientState::detached);
  client.attached_from.reset();
  if (client.lua) client.lua->leave(state_.now);
}

void Clients::record(const Client& client, ClientState state) {
  state_.to_rank(PublishEvent{ClientChange{state, client.user, client.session, *client.attached_from}});
}

bool Clients::have_more() const {
  return std::ranges::any_of(clients_, [](const auto& client) { return client->has_more; });
}

bool Clients::have_readers() const {
  return std::ranges::any_of(clients_, [](const auto& client) { return client->reader.has_value(); });
}

}  // namespace footplate::host
