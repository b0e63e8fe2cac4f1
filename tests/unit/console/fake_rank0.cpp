#include "fake_rank0.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

#include "protocol/frame.h"
#include "test_schema.h"

namespace footplate::test {
namespace {

pid_t start_console(int socket, const std::filesystem::path& directory,
                    const std::vector<std::string>& more) {
  std::vector<std::string> words = {FOOTPLATE_CONSOLE, "--run-dir", directory};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, 3);
  posix_spawn_file_actions_addclosefrom_np(&actions, 4);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, FOOTPLATE_CONSOLE, &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("can't start " FOOTPLATE_CONSOLE);
  return pid;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = "/tmp/footplate-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

FakeRank0::FakeRank0(const std::filesystem::path& directory, const std::vector<std::string>& arguments,
                     Json reports, const Json& more)
    : socket_(directory / "socket" / "run.sock"),
      first_id_(reports.size() + 1),
      settings_(Settings::defaults(small_schema())) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
    throw std::runtime_error("no socketpair");
  fd_ = pair[0];
  pid_ = start_console(pair[1], directory, arguments);
  ::close(pair[1]);
  const Json run = {{"name", "kjv-3"},
                    {"id", "a1b2"},
                    {"socket", socket_},
                    {"started", "2026-11-20T19:00:00Z"},
                    {"world_size", 8}};
  Json hello = {{"type", "hello"},
                {"protocol", kProtocolVersion},
                {"run", run},
                {"schema", small_schema().to_json()},
                {"settings", settings_.to_json()},
                {"status", Json::object()},
                {"reports", std::move(reports)}};
  hello.merge_patch(more);
  send(hello);
  send_status(812);
  server_ = std::thread([this] { serve(); });
}

FakeRank0::~FakeRank0() {
  end();
}

int FakeRank0::end() {
  if (fd_ < 0) return 0;
  ::shutdown(fd_, SHUT_RDWR);
  server_.join();
  ::close(fd_);
  fd_ = -1;
  int status = 0;
  if (!eventually([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; })) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, &status, 0);
    return 256;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 256;
}

void FakeRank0::send(const Json& message) {
  const std::lock_guard lock(send_mutex_);
  const std::string line = to_line(message);
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;
    sent += static_cast<std::size_t>(count);
  }
}

void FakeRank0::send_status(std::int64_t step) {
  RankStatus rank;
  rank.step = step;
  rank.phase = "reduce";
  rank.collective = CollectiveStatus{4471, "all_reduce", 842499, true, 0.0};
  StatusUpdate update;
  update.status.run = "kjv-3";
  update.status.state = RunState::running;
  update.status.step = step;
  update.status.world_size = 8;
  update.status.ranks = {rank};
  send(update);
}

void FakeRank0::finish_call(std::uint64_t order) {
  send(CallReport{order, 0, "eval.now", CallState::done, {{"loss", 1.5}}, "", false});
}

void FakeRank0::apply_held(std::uint64_t order) {
  OrderReport report;
  report.id = order;
  report.state = OrderState::applied;
  report.applied = Applied{order, 12041, 8, 8, "digest", {}};
  send(report);
}

void FakeRank0::send_event(const std::string& topic, const Json& data, std::uint64_t hold) {
  Json line = {{"type", "event"}, {"topic", topic}, {"time", "2026-11-20T19:00:01Z"}, {"data", data}};
  if (hold != 0) line["hold"] = hold;
  send(line);
}

std::vector<Json> FakeRank0::lines(const std::string& type) const {
  const std::lock_guard lock(mutex_);
  std::vector<Json> found;
  for (const Json& line : lines_)
    if (line["type"] == type) found.push_back(line);
  return found;
}

std::vector<Order> FakeRank0::orders() const {
  const std::lock_guard lock(mutex_);
  return orders_;
}

void FakeRank0::serve() {
  LineReader reader;
  std::array<char, 65536> bytes;
  for (;;) {
    const ssize_t count = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (count <= 0) return;
    reader.append({bytes.data(), static_cast<std::size_t>(count)});
    while (auto line = reader.next().value()) answer(parse_line(*line).value());
  }
}

void FakeRank0::answer(const Json& line) {
  if (deaf) {
    unheard += line["type"] == "order" ? 1 : 0;
    return;
  }
  const ConsoleMessage message = console_message_from_json(line).value();
  if (const auto* submit = std::get_if<SubmitOrder>(&message)) return take(*submit);
  if (const auto* withdraw = std::get_if<WithdrawOrder>(&message)) {
    OrderReport report;
    report.state = OrderState::withdrawn;
    report.id = withdraw->id.value_or(0);
    report.ref = withdraw->ref;
    send(report);
  }
  if (const auto* publish = std::get_if<PublishEvent>(&message))
    send_event(std::string(to_string(topic_of(publish->data))), to_json(publish->data));
  const std::lock_guard lock(mutex_);
  lines_.push_back(line);
}

void FakeRank0::take(const SubmitOrder& submit) {
  Order order = submit.order.value();
  {
    const std::lock_guard lock(mutex_);
    order.id = first_id_ + orders_.size();
    orders_.push_back(order);
  }
  OrderReport report;
  report.ref = submit.ref;
  report.id = order.id;
  report.state = OrderState::accepted;
  send(report);
  if (hold_orders) {
    report.state = OrderState::waiting;
    report.text = "waiting for rank 3: step 812, all_reduce #4471, 42 s";
    return send(report);
  }
  if (refuse_orders) {
    report.state = OrderState::refused;
    report.error = "rank 3: not enough memory";
    return send(report);
  }
  if (order.at_step) {
    report.state = OrderState::committed;
    report.step = std::max(first_step.load(), *order.at_step);
    return send(report);
  }
  apply(std::move(order), submit.ref);
}

void FakeRank0::apply(Order order, const std::string& ref) {
  OrderReport report;
  report.ref = ref;
  report.id = order.id;
  report.state = OrderState::applied;
  report.applied = Applied{order.id, 12041, 8, 8, "digest", {}};
  SettingsUpdate changed;
  for (const Change& change : order.changes) {
    report.applied->moved.push_back({change.name, settings_.value(change.name), change.value});
    settings_.set(change.name, change.value, "order " + std::to_string(order.id));
    changed.settings[change.name] = {to_json(change.value), settings_.source(change.name)};
  }
  send(changed);
  for (std::size_t i = 0; i < order.calls.size(); ++i) report.calls.push_back({i, order.calls[i].action});
  report.order = order;
  send(report);
  for (std::size_t i = 0; i < order.calls.size() && !hold_calls; ++i)
    send(CallReport{order.id, i, order.calls[i].action, CallState::done, {{"loss", 1.5}}, "", false});
}

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const pid_t candidate = std::atoi(entry.path().filename().c_str());
    if (candidate <= 0) continue;
    std::ifstream status(entry.path() / "stat");
    std::string number, name, state;
    pid_t parent = 0;
    if (status >> number >> name >> state >> parent && parent == pid && state != "Z")
      children.push_back(candidate);
  }
  return children;
}

}  // namespace footplate::test
