#include "console/host/console.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace footplate::host {
namespace {

constexpr std::size_t kRankUnread =
    64U * 1024 * 1024;  ///< what rank 0 may leave unread: never reached unless it is dead
constexpr std::chrono::seconds kLookEvery{1};
constexpr std::chrono::seconds kLookLate{2};  ///< how long a look may wait for something else to wake it
constexpr std::chrono::milliseconds kClientsReadEnd{500};  ///< for what clients still have to read at the end
constexpr std::size_t kEventsAhead =
    256U * 1024;  ///< unsent bytes of a client beyond which events stay in the ring
constexpr std::chrono::seconds kHeldUp{10};  ///< between two looks: this process was stopped, or swapped out
/// Rank 0 may have nothing to say for two seconds.
constexpr double kLeastPatience = 4;
constexpr int kLinesATurn = 64;  ///< of one client

Fd nonblocking(int fd) {
  return Fd(fd);
}  // all reads and writes pass MSG_DONTWAIT

}  // namespace

Console::Console(ConsoleOptions options)
    : options_(std::move(options)),
      rank_(nonblocking(options_.rank_fd), kRankUnread),
      view_(options_.limits.silent_s),
      ring_(static_cast<std::size_t>(options_.limits.events)),
      automation_(options_.run_directory, options_.limits, automation_ports()),
      now_(Clock::now()),
      next_look_(now_ + kLookEvery),
      ref_prefix_("c" + std::to_string(::getpid()) + "-") {
  view_.heard(now_);
}

int Console::run() {
  while (running_) turn();
  say_bye();
  return exit_code_;
}

/// One turn: wait for whatever comes first, let everyone who is ready have a bounded share, send.
void Console::turn() {
  std::vector<pollfd> ready = {{rank_.fd(), rank_.events(), 0},
                               {options_.signal_fd, POLLIN, 0},
                               {listener_ ? listener_->fd() : -1, POLLIN, 0}};
  const std::vector<Client*> clients = [this] {
    std::vector<Client*> list;
    for (auto& client : clients_) list.push_back(client.get());
    return list;
  }();
  for (Client* client : clients) {
    ready.push_back({client->connection.fd(), client->connection.events(), 0});
    const bool lua = client->lua && client->lua->has_process();
    ready.push_back({lua ? client->lua->fd() : -1, static_cast<short>(lua ? client->lua->events() : 0), 0});
  }
  const std::size_t first_script = ready.size();
  for (LuaSession* lua : automation_.processes()) ready.push_back({lua->fd(), lua->events(), 0});
  ::poll(ready.data(), ready.size(), timeout_ms());
  now_ = Clock::now();
  on_rank(ready[0].revents);
  if (ready[1].revents != 0) running_ = false;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    Client& client = *clients[i];
    const pollfd& lua = ready[4 + 2 * i];
    if (lua.revents != 0 && client.lua->has_process() && client.lua->fd() == lua.fd)
      client.lua->on_ready(lua.revents, now_);
    on_client(client, ready[3 + 2 * i].revents);
  }
  for (LuaSession* lua : automation_.processes())
    for (std::size_t i = first_script; i < ready.size(); ++i)
      if (lua->has_process() && ready[i].fd == lua->fd() && ready[i].revents != 0)
        lua->on_ready(ready[i].revents, now_);
  if (ready[2].revents != 0) on_listener();
  on_time();
  for (auto& client : clients_) {
    deliver_events(*client);
    if (!client->connection.flush()) client->gone = true;
    if (client->lua && client->lua->has_process()) client->lua->on_ready(0, now_);
  }
  for (LuaSession* lua : automation_.processes()) lua->on_ready(0, now_);
  drop_gone();
  follow_if_needed();
  if (!rank_.flush()) running_ = false;
}

int Console::timeout_ms() const {
  Clock::time_point next = next_look_ + kLookLate;
  const auto consider = [&next](const std::optional<Clock::time_point>& time) {
    if (time && *time < next) next = *time;
  };
  consider(waits_.next_deadline());
  consider(automation_.deadline());
  if (!spare_ && view_.known()) consider(spare_due_);
  for (const auto& client : clients_) {
    if (client->has_more) return 0;
    if (client->lua) consider(client->lua->deadline());
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 10'000));
}

void Console::on_rank(short revents) {
  if ((revents & (POLLIN | POLLHUP | POLLERR)) == 0) return;
  const Connection::Read read = rank_.read();
  if (read == Connection::Read::some) view_.heard(now_);
  for (;;) {
    auto line = rank_.next_line();
    if (!line) {
      spdlog::error("rank 0 sent a {}: ending", line.error().message);
      exit_code_ = 1;
      running_ = false;
      return;
    }
    if (!*line) break;
    auto message = parse_line(**line);
    try {
      if (message && message->is_object())
        rank_message(*message);
      else
        spdlog::warn("rank 0 sent something that isn't of the protocol");
    } catch (const Json::exception& error) {
      spdlog::warn("rank 0 sent a malformed message: {}", error.what());
    }
    waits_.look(now_);
  }
  if (read == Connection::Read::end) running_ = false;
}

void Console::on_listener() {
  Accepted accepted = listener_->accept();
  if (!accepted.fd) return;
  auto client = std::make_unique<Client>(
      ++last_client_,
      Connection(std::move(accepted.fd), static_cast<std::size_t>(options_.limits.unread_bytes)));
  client->user = accepted.user;
  client->role = options_.role;
  if (clients_.size() >= static_cast<std::size_t>(options_.limits.clients)) {
    const Error full{ErrorKind::refused, std::to_string(clients_.size()) +
                                             " clients are connected already, the most there may be"};
    send(*client, {{"type", "error"}, {"id", nullptr}, {"error", to_json(full)}});
    client->connection.flush();
    return;
  }
  send(*client, {{"type", "hello"},
                 {"product", "footplate"},
                 {"protocol", kProtocolVersion},
                 {"run", view_.run()},
                 {"session", client->session},
                 {"role", to_string(client->role)},
                 {"limits", options_.limits.to_json()}});
  clients_.push_back(std::move(client));
}

void Console::on_client(Client& client, short revents) {
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
      send(client, {{"type", "error"}, {"id", nullptr}, {"error", to_json(line.error())}});
      client.leaving = true;
      client.connection.stop_reading();
    } else if (!*line) {
      break;
    } else {
      client_line(client, **line);
    }
  }
}

void Console::on_time() {
  if (waits_.next_deadline().value_or(now_) < now_) tell_silence();  // before it is too late to
  waits_.look(now_);
  for (auto& client : clients_)
    if (client->lua) client->lua->on_time(now_);
  automation_.on_time(now_);
  waits_.look(now_);
  keep_spare();
  if (now_ < next_look_) return;
  next_look_ = now_ + kLookEvery;
  reaper_.reap();
  tell_silence();
  end_stuck_rank();
  if (journal_) journal_->retry();
  if (view_.known() && (!listener_ || !listener_->in_place())) listen();
}

/// Rank 0 counts how long the others are silent, comm.hard_limit_s; nobody counts its own silence but this
/// process, its child. Where it is the only rank nothing goes on without it.
void Console::end_stuck_rank() {
  const bool held_up = now_ - last_look_ > kHeldUp;
  last_look_ = now_;
  silent_since_ = std::max(silent_since_, held_up ? now_ : view_.heard());
  if (!view_.known() || view_.result() || view_.status().value("world_size", 1) < 2) return;
  const double limit =
      view_.settings().has("comm.hard_limit_s") ? view_.settings().number("comm.hard_limit_s") : 0;
  const double silent = std::chrono::duration<double>(now_ - silent_since_).count();
  if (limit <= 0 || silent <= std::max(limit, kLeastPatience)) return;
  if (::getppid() != rank_pid_) return;
  const std::string text =
      fmt::format("killed past comm.hard_limit_s ({:.3g} s): {}", limit, view_.silence(now_));
  spdlog::warn("{}", text);
  event("rank", {{"rank", 0}, {"state", "killed"}, {"text", text}});
  ::kill(rank_pid_, SIGKILL);
}

void Console::deliver_events(Client& client) {
  while (client.reader && !client.gone && client.connection.unsent() < kEventsAhead) {
    const auto line = ring_.next_for(*client.reader);
    if (!line) return;
    if (!client.connection.send_line(*line)) not_sent(client, line->size(), Json());
  }
}

void Console::drop_gone() {
  for (auto& client : clients_) {
    const bool idle = client->open_requests == 0 && !client->has_more && client->connection.unsent() == 0;
    if (idle && (client->leaving || (!client->connection.reading() && !client->reader))) client->gone = true;
    if (!client->gone) continue;
    waits_.forget(client->id);
    if (client->attached_from) record_client(*client, "detached");
  }
  std::erase_if(clients_, [](const auto& client) { return client->gone; });
}

/// Rank 0 is gone: everyone who waits is told, what is written gets a moment to be read.
void Console::say_bye() {
  const std::string how = view_.result() ? "the run has ended" : "rank 0 is gone";
  const Error error{ErrorKind::unreachable, how};
  for (auto& client : clients_)
    for (const Json& eval : std::exchange(client->evals, {}))
      send(*client, {{"type", "error"}, {"id", eval["id"]}, {"error", to_json(error)}});
  finish_scripts(error);
  for (auto& client : clients_)
    if (client->lua) client->lua->end(error);
  automation_.end(error);
  spare_.reset();
  listener_.reset();
  const auto end = Clock::now() + kClientsReadEnd;
  while (Clock::now() < end) {
    std::vector<pollfd> unsent;
    for (auto& client : clients_) {
      deliver_events(*client);
      if (!client->connection.flush()) client->gone = true;
      if (!client->gone && client->connection.unsent() > 0)
        unsent.push_back({client->connection.fd(), POLLOUT, 0});
    }
    if (unsent.empty()) return;
    ::poll(unsent.data(), unsent.size(), 50);
  }
}

void Console::send(Client& client, const Json& message) {
  if (client.gone || client.connection.send(message)) return;
  not_sent(client, to_line(message).size(), message.value("id", Json()));
}

void Console::not_sent(Client& client, std::size_t bytes, const Json& id) {
  const auto limit = static_cast<std::size_t>(options_.limits.unread_bytes);
  if (bytes <= kMaxFrameBytes && client.connection.unsent() + kMaxFrameBytes > limit) {
    spdlog::info("{} left {} bytes unread: disconnected", client.session, client.connection.unsent());
    client.gone = true;
    return;
  }
  const Error error{ErrorKind::failed, "the answer is longer than a line of 1 MiB; ask for less"};
  client.connection.send({{"type", "error"}, {"id", id}, {"error", to_json(error)}});
}

void Console::to_rank(const Json& message) {
  if (!rank_.send(message)) spdlog::error("a message for rank 0 is too long, or it reads no more");
}

std::optional<Console::Clock::time_point> Console::after(std::optional<double> seconds) const {
  if (!seconds) return std::nullopt;
  constexpr double kLongest = 1e9;
  return now_ + std::chrono::duration_cast<Clock::duration>(
                    std::chrono::duration<double>(std::clamp(*seconds, 0.0, kLongest)));
}

}  // namespace footplate::host
