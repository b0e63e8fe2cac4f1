#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>

#include "console/host/console.h"

// The console's side of rules, jobs and store: what Automation needs of it, and what scripts ask.

namespace footplate::host {
namespace {

constexpr std::chrono::milliseconds kLastWords{
    400};  ///< for on("stop"): rank 0 waits a second for all of this

}  // namespace

Automation::Ports Console::automation_ports() {
  Automation::Ports ports;
  ports.request = [this](Client& from, const Json& message) {
    dispatch(kLuaOperations, {from, message, script_answer(from, "answer", message.value("id", Json()))});
  };
  ports.hello = [this](const Client& of) { return lua_hello(of); };
  ports.process = [this] { return fresh_process(); };
  ports.submit = [this](Client& from, Order order) { return submit(from, std::move(order)); };
  ports.to_rank = [this](const Json& line) { to_rank(line); };
  ports.forget_waits = [this](std::uint64_t client) { waits_.forget(client); };
  ports.step = [this] { return view_.step(); };
  ports.metrics = [this] { return view_.metrics(); };
  ports.log = [](const std::string& text) { spdlog::warn("{}", text); };
  return ports;
}

void Console::happened(const std::string& event, const Json& data) {
  auto& [count, last] = happened_[event];
  ++count;
  last = data;
}

/// The processes in which a chunk of a client is running.
std::vector<LuaSession*> Console::running_chunks() {
  std::vector<LuaSession*> running;
  for (auto& client : clients_)
    if (client->lua && client->lua->busy() && client->lua->has_process())
      running.push_back(client->lua.get());
  return running;
}

/// Rank 0 is gone, or about to be: on("stop") has a moment, for what a script wants to write down, and so has
/// a chunk, for what it has just been told: as of run.stop(). What nobody tells any more fails with `error`.
void Console::finish_scripts(const Error& error) {
  const auto end = Clock::now() + kLastWords;
  const auto settle_waits = [&] {
    waits_.look(now_ = Clock::now());
    waits_.fail_all(error);
  };
  settle_waits();
  for (auto chunks = running_chunks(); (automation_.ending() || !chunks.empty()) && Clock::now() < end;
       chunks = running_chunks()) {
    automation_.on_time(now_);
    for (LuaSession* lua : automation_.processes()) chunks.push_back(lua);
    std::vector<pollfd> ready;
    for (LuaSession* lua : chunks) ready.push_back({lua->fd(), lua->events(), 0});
    constexpr int kLook_ms = 20;
    ::poll(ready.data(), ready.size(), kLook_ms);
    now_ = Clock::now();
    for (LuaSession* lua : chunks)
      if (lua->has_process()) lua->on_ready(POLLIN, now_);
    settle_waits();
  }
}

/// What a script's wait gets once there is nothing left to wait for.
std::optional<Result<Json>> Console::failure_of_the_end() const {
  if (!view_.result()) return std::nullopt;
  return Result<Json>(fail(ErrorKind::failed, "the run ended at step " + std::to_string(view_.step())));
}

void Console::op_wait_event(Request& request) {
  const std::string event = request.message.value("event", "");
  constexpr std::array kEvents = {"log", "eval", "ckpt", "warn", "order", "nccl", "stop"};
  if (std::find(kEvents.begin(), kEvents.end(), event) == kEvents.end())
    return request.answer(
        fail(ErrorKind::script,
             "run.wait knows no event '" + event + "'; there are log, eval, ckpt, warn, order, nccl, stop"));
  const std::uint64_t before = happened_[event].first;
  const auto at = [this](const char* key, Json value) {
    return Json{{"step", view_.step()}, {key, std::move(value)}};
  };
  Waits::Wait wait;
  wait.owner = request.client.id;
  wait.of_script = true;
  wait.ready = [this, event, before, at]() -> std::optional<Result<Json>> {
    const auto& [count, last] = happened_[event];
    if (count > before) return Result<Json>(at("event", last));
    return failure_of_the_end();
  };
  const auto timeout = request.message.find("timeout_s");
  if (timeout != request.message.end()) wait.deadline = after(timeout->get<double>());
  wait.late = [at]() -> Result<Json> { return at("timed_out", true); };
  wait.answer = request.answer;
  waits_.add(std::move(wait), now_);
}

/// Logged metrics one after the other, none left out: {"next", "lines"}, as soon as there is one since
/// `since`, which is `next` of the answer before. Without `since` at once, and nothing but `next`.
void Console::op_wait_lines(Request& request) {
  constexpr std::size_t kMost = 200;  // in an answer
  const auto since = request.message.find("since");
  if (since == request.message.end()) return request.answer(Json{{"next", ring_.next_sequence()}});
  Waits::Wait wait;
  wait.owner = request.client.id;
  wait.of_script = true;
  wait.ready = [this,
                reader = EventRing::Reader{
                    {"metrics"}, since->get<std::uint64_t>(), 0}]() mutable -> std::optional<Result<Json>> {
    Json lines = Json::array();
    while (lines.size() < kMost) {
      const auto line = ring_.next_for(reader);
      if (!line) break;
      Json data = Json::parse(*line).value("data", Json::object());
      if (data.contains("train/loss")) lines.push_back(std::move(data));
    }
    if (!lines.empty()) return Result<Json>(Json{{"next", reader.next}, {"lines", std::move(lines)}});
    return failure_of_the_end();
  };
  wait.answer = request.answer;
  waits_.add(std::move(wait), now_);
}

void Console::op_wait_seconds(Request& request) {
  const auto now = [this]() -> Result<Json> { return Json{{"step", view_.step()}}; };
  Waits::Wait wait;
  wait.owner = request.client.id;
  wait.of_script = true;
  wait.ready = [this]() -> std::optional<Result<Json>> { return failure_of_the_end(); };
  wait.deadline = after(request.message.value("seconds", 0.0));
  wait.late = now;
  wait.answer = request.answer;
  waits_.add(std::move(wait), now_);
}

void Console::op_wait_rules(Request& request) {
  const Automation::Outcome outcome = automation_.register_chunk(request.client, request.message);
  Waits::Wait wait;
  wait.owner = request.client.id;
  wait.of_script = true;
  wait.ready = [outcome] { return *outcome; };
  wait.answer = request.answer;
  waits_.add(std::move(wait), now_);
}

void Console::op_rule(Request& request) {
  request.answer(automation_.register_rule(request.client, request.message));
}

void Console::op_rules(Request& request) {
  request.answer(automation_.rules());
}

void Console::op_rule_off(Request& request) {
  request.answer(automation_.switch_off(request.client, request.message.value("rule", std::int64_t{0})));
}

void Console::op_jobs(Request& request) {
  request.answer(automation_.jobs());
}

void Console::op_job_off(Request& request) {
  request.answer(automation_.stop_job(request.client, request.message.value("job", "")));
}

void Console::op_store(Request& request) {
  request.answer(view_.store());
}

}  // namespace footplate::host
