#include "console/host/loop/console.h"

#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace footplate::host {
namespace {

constexpr std::chrono::seconds kLookEvery{1};
constexpr std::chrono::seconds kLookLate{2};  ///< how long a look may wait for something else to wake it
constexpr std::chrono::milliseconds kClientsReadEnd{500};  ///< for what clients still have to read at the end
constexpr std::chrono::milliseconds kLastWords{
    400};  ///< for on("stop"): rank 0 waits a second for all of this

constexpr std::chrono::milliseconds kRankSaysSo{500};  ///< that the run ends, at the next step
constexpr std::chrono::milliseconds kLongestSilence{5000};

}  // namespace

Console::Console(ConsoleOptions options)
    : state_(std::move(options)),
      clients_(state_),
      orders_(state_),
      sessions_(
          state_, clients_, reaper_,
          [this](Client& client, const SessionRequest& request) { answer_script(api_, client, request); }),
      automation_(state_.options.run_directory, state_.options.limits, automation_ports()),
      api_{state_, questions_, clients_, sessions_, orders_, automation_},
      rank_messages_(state_, questions_, clients_, sessions_, automation_),
      stuck_rank_(state_),
      next_look_(state_.now + kLookEvery) {}

Automation::Ports Console::automation_ports() {
  Automation::Ports ports;
  ports.request = [this](Client& from, const SessionRequest& request) { answer_script(api_, from, request); };
  ports.hello = [this](const Client& of) { return sessions_.hello(of); };
  ports.process = [this] { return sessions_.process(); };
  ports.submit = [this](Client& from, Order order) { return orders_.submit(from, std::move(order)); };
  ports.to_rank = [this](const ConsoleMessage& message) { state_.to_rank(message); };
  ports.forget_waits = [this](std::uint64_t client) { state_.waits.forget(client); };
  ports.step = [this] { return state_.view.step(); };
  ports.metrics = [this] { return state_.view.metrics(); };
  ports.log = [](const std::string& text) { spdlog::warn("{}", text); };
  return ports;
}

int Console::run() {
  while (running_) turn();
  say_bye();
  return exit_code_;
}

/// One turn: wait for whatever comes first, let everyone who is ready have a bounded share, send.
void Console::turn() {
  std::vector<pollfd> ready = {{state_.rank.fd(), state_.rank.events(), 0},
                               {state_.options.signal_fd, POLLIN, 0},
                               {clients_.listener_fd(), POLLIN, 0}};
  std::vector<Client*> clients;  // whose descriptors are in `ready`: two each, its connection's and its Lua's
  for (const auto& client : clients_.all()) {
    clients.push_back(client.get());
    ready.push_back({client->connection.fd(), client->connection.events(), 0});
    const bool lua = client->lua && client->lua->has_process();
    ready.push_back({lua ? client->lua->fd() : -1, static_cast<short>(lua ? client->lua->events() : 0), 0});
  }
  for (LuaSession* lua : automation_.processes()) ready.push_back({lua->fd(), lua->events(), 0});
  ::poll(ready.data(), ready.size(), timeout_ms());
  state_.now = Clock::now();
  serve(ready, clients);
  on_time();
  leave_if_due();
  flush_clients();
  for (LuaSession* lua : automation_.processes()) lua->on_ready(0, state_.now);
  clients_.drop_gone();
  follow_if_needed();
  if (!state_.rank.flush()) running_ = false;
}

void Console::serve(const std::vector<pollfd>& ready, const std::vector<Client*>& clients) {
  constexpr std::size_t kFirstClient = 3;
  on_rank(ready[0].revents);
  if (ready[1].revents != 0) on_signal();
  for (std::size_t i = 0; i < clients.size(); ++i) {
    Client& client = *clients[i];
    const pollfd& lua = ready[kFirstClient + 2 * i + 1];
    if (lua.revents != 0 && client.lua->has_process() && client.lua->fd() == lua.fd)
      client.lua->on_ready(lua.revents, state_.now);
    clients_.read(client, ready[kFirstClient + 2 * i].revents,
                  [this](Client& from, const std::string& line) { answer_client(api_, from, line); });
  }
  for (LuaSession* lua : automation_.processes())
    for (std::size_t i = kFirstClient + 2 * clients.size(); i < ready.size(); ++i)
      if (lua->has_process() && ready[i].fd == lua->fd() && ready[i].revents != 0)
        lua->on_ready(ready[i].revents, state_.now);
  if (ready[2].revents != 0) clients_.accept();
}

void Console::flush_clients() {
  for (const auto& client : clients_.all()) {
    clients_.flush(*client);
    if (client->lua && client->lua->has_process()) client->lua->on_ready(0, state_.now);
  }
}

int Console::timeout_ms() const {
  if (clients_.have_more()) return 0;
  Clock::time_point next = next_look_ + kLookLate;
  for (const auto& time :
       {leaves_at_, state_.waits.next_deadline(), automation_.deadline(), sessions_.deadline()})
    if (time && *time < next) next = *time;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 10'000));
}

/// TERM to all processes of a job ends the run, too. Rank 0 says so within a moment, and on("stop") is this
/// console's to run.
void Console::on_signal() {
  signalfd_siginfo told{};
  while (::read(state_.options.signal_fd, &told, sizeof told) > 0) {
  }
  const std::chrono::duration<double, std::milli> two_steps(2 * state_.view.status().step_ms.value_or(0));
  leaves_at_ = state_.now + std::clamp(std::chrono::duration_cast<std::chrono::milliseconds>(two_steps),
                                       kRankSaysSo, kLongestSilence);
}

void Console::leave_if_due() {
  if (!leaves_at_ || state_.now < *leaves_at_) return;
  if (state_.view.status().state == RunState::ending) {
    leaves_at_ = state_.now + kRankSaysSo;  // an order may still have it train on
    return;
  }
  by_signal_ = true;
  running_ = false;
}

void Console::on_rank(short revents) {
  if ((revents & (POLLIN | POLLHUP | POLLERR)) == 0) return;
  const Connection::Read read = state_.rank.read();
  if (read == Connection::Read::some) state_.view.heard(state_.now);
  for (;;) {
    auto line = state_.rank.next_line();
    if (!line) {
      spdlog::error("rank 0 sent a {}: ending", line.error().message);
      exit_code_ = 1;
      running_ = false;
      return;
    }
    if (!*line) break;
    hear(**line);
    state_.waits.look(state_.now);
  }
  if (read == Connection::Read::end) running_ = false;
}

/// A line of rank 0. One that isn't of the protocol, or is of a later one, is left out.
void Console::hear(const std::string& line) {
  const auto json = parse_line(line);
  const auto message = json ? rank_zero_message_from_json(*json) : tl::unexpected(json.error());
  if (!message)
    return spdlog::warn("rank 0 sent something that isn't of the protocol: {}", message.error().message);
  if (const auto heard = rank_messages_.hear(*message); !heard) {
    spdlog::error("{}", heard.error().message);
    exit_code_ = 1;
    running_ = false;
  }
}

void Console::on_time() {
  // Before it is too late to.
  if (state_.waits.next_deadline().value_or(state_.now) < state_.now) orders_.tell_silence();
  state_.waits.look(state_.now);
  sessions_.on_time();
  automation_.on_time(state_.now);
  state_.waits.look(state_.now);
  sessions_.keep_spare();
  if (state_.now < next_look_) return;
  next_look_ = state_.now + kLookEvery;
  reaper_.reap();
  orders_.tell_silence();
  stuck_rank_.look();
  if (state_.journal) state_.journal->retry();
  if (state_.view.known()) clients_.keep_listening();
}

void Console::follow_if_needed() {
  // Whether anybody looks at what happens, rather than at what is when they ask.
  const bool followed = clients_.have_readers() || state_.waits.for_steps() > 0 || automation_.follows();
  if (!state_.view.known() || state_.following == followed) return;
  state_.following = followed;
  state_.to_rank(FollowRun{followed});
}

/// Rank 0 is gone: everyone who waits is told, what is written gets a moment to be read. Where a signal ends
/// this console alone, rank 0 starts another one: rules and jobs go on there, as after one that was killed.
void Console::say_bye() {
  const std::string how = state_.view.result() ? "the run has ended"
                          : by_signal_         ? "a signal ends this console; rank 0 starts another one"
                                               : "rank 0 is gone";
  const Error error{ErrorKind::unreachable, how};
  for (const auto& client : clients_.all())
    for (const EvalChunk& eval : std::exchange(client->evals, {}))
      clients_.send_error(*client, eval.id, error);
  const bool goes_on_elsewhere = by_signal_ && !state_.view.result();
  if (!goes_on_elsewhere) finish_scripts(error);
  sessions_.end(error);
  if (!goes_on_elsewhere) automation_.end(error);
  clients_.stop_listening();
  const auto end = Clock::now() + kClientsReadEnd;
  while (Clock::now() < end) {
    std::vector<pollfd> unsent;
    for (const auto& client : clients_.all()) {
      clients_.flush(*client);
      if (!client->gone && client->connection.unsent() > 0)
        unsent.push_back({client->connection.fd(), POLLOUT, 0});
    }
    if (unsent.empty()) return;
    ::poll(unsent.data(), unsent.size(), 50);
  }
}

/// Rank 0 is gone, or about to be: on("stop") has a moment, for what a script wants to write down, and so has
/// a chunk, for what it has just been told: as of run.stop(). What nobody tells any more fails with `error`.
void Console::finish_scripts(const Error& error) {
  const auto end = Clock::now() + kLastWords;
  const auto settle_waits = [&] {
    state_.waits.look(state_.now = Clock::now());
    state_.waits.fail_all(error);
  };
  settle_waits();
  for (auto chunks = sessions_.running(); (automation_.ending() || !chunks.empty()) && Clock::now() < end;
       chunks = sessions_.running()) {
    automation_.on_time(state_.now);
    for (LuaSession* lua : automation_.processes()) chunks.push_back(lua);
    std::vector<pollfd> ready;
    for (LuaSession* lua : chunks) ready.push_back({lua->fd(), lua->events(), 0});
    constexpr int kLook_ms = 20;
    ::poll(ready.data(), ready.size(), kLook_ms);
    state_.now = Clock::now();
    for (LuaSession* lua : chunks)
      if (lua->has_process()) lua->on_ready(POLLIN, state_.now);
    settle_waits();
  }
}

}  // namespace footplate::host
