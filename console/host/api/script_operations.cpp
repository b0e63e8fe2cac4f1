#include "console/host/api/operations.h"

#include <algorithm>
#include <array>
#include <string>

#include "console/host/api/request_fields.h"

namespace footplate::host::operations {
namespace {

/// What a script's wait gets once there is nothing left to wait for.
std::optional<Result<Json>> failure_of_the_end(const Api& api) {
  if (!api.host.view.result()) return std::nullopt;
  return Result<Json>(
      fail(ErrorKind::failed, "the run ended at step " + std::to_string(api.host.view.step())));
}

}  // namespace

/// A chunk's question to the person at its client; only a chunk whose `eval` said that there is one asks.
void wait_answer(Api& api, Request& request) {
  Client& client = request.client;
  client.open_question = request.answer;
  api.clients.send(
      client,
      {{"type", "question"}, {"question", ++client.questions}, {"text", request.message.value("text", "")}});
}

void wait_step(Api& api, Request& request) {
  constexpr double kLast = 9e15;  // beyond any run, and a whole number in either type
  const auto step = static_cast<std::int64_t>(std::clamp(request.message.value("step", 0.0), 0.0, kLast));
  const auto reached = [&api] { return Json{{"step", api.host.view.step()}}; };
  Waits::Wait wait;
  wait.of_script = wait.for_step = true;
  wait.ready = [&api, step, reached]() -> std::optional<Result<Json>> {
    if (api.host.view.step() >= step) return Result<Json>(reached());
    return failure_of_the_end(api);
  };
  wait.deadline = api.host.after(timeout_of(request.message));
  wait.late = [reached]() -> Result<Json> {
    Json late = reached();
    late["timed_out"] = true;
    return late;
  };
  wait_for(api, request, std::move(wait));
}

void wait_event(Api& api, Request& request) {
  const std::string event = request.message.value("event", "");
  constexpr std::array kEvents = {"log", "eval", "ckpt", "warn", "order", "nccl", "stop"};
  if (std::find(kEvents.begin(), kEvents.end(), event) == kEvents.end())
    return request.answer(
        fail(ErrorKind::script,
             "run.wait knows no event '" + event + "'; there are log, eval, ckpt, warn, order, nccl, stop"));
  const std::uint64_t before = api.host.last[event].first;
  const auto at = [&api](const char* key, Json value) {
    return Json{{"step", api.host.view.step()}, {key, std::move(value)}};
  };
  Waits::Wait wait;
  wait.of_script = true;
  wait.ready = [&api, event, before, at]() -> std::optional<Result<Json>> {
    const auto& [count, last] = api.host.last[event];
    if (count > before) return Result<Json>(at("event", last));
    return failure_of_the_end(api);
  };
  const auto timeout = request.message.find("timeout_s");
  if (timeout != request.message.end()) wait.deadline = api.host.after(timeout->get<double>());
  wait.late = [at]() -> Result<Json> { return at("timed_out", true); };
  wait_for(api, request, std::move(wait));
}

/// Logged metrics one after the other, none left out: {"next", "lines"}, as soon as there is one since
/// `since`, which is `next` of the answer before. Without `since` at once, and nothing but `next`.
void wait_lines(Api& api, Request& request) {
  constexpr std::size_t kMost = 200;  // in an answer
  const auto since = request.message.find("since");
  if (since == request.message.end()) return request.answer(Json{{"next", api.host.ring.next_sequence()}});
  Waits::Wait wait;
  wait.of_script = true;
  wait.ready = [&api,
                reader = EventRing::Reader{
                    {"metrics"}, since->get<std::uint64_t>(), 0}]() mutable -> std::optional<Result<Json>> {
    Json lines = Json::array();
    while (lines.size() < kMost) {
      const auto line = api.host.ring.next_for(reader);
      if (!line) break;
      Json data = Json::parse(*line).value("data", Json::object());
      if (data.contains("train/loss")) lines.push_back(std::move(data));
    }
    if (!lines.empty()) return Result<Json>(Json{{"next", reader.next}, {"lines", std::move(lines)}});
    return failure_of_the_end(api);
  };
  wait_for(api, request, std::move(wait));
}

void wait_seconds(Api& api, Request& request) {
  const auto now = [&api]() -> Result<Json> { return Json{{"step", api.host.view.step()}}; };
  Waits::Wait wait;
  wait.of_script = true;
  wait.ready = [&api]() -> std::optional<Result<Json>> { return failure_of_the_end(api); };
  wait.deadline = api.host.after(request.message.value("seconds", 0.0));
  wait.late = now;
  wait_for(api, request, std::move(wait));
}

void wait_rules(Api& api, Request& request) {
  const Automation::Outcome outcome = api.automation.register_chunk(request.client, request.message);
  Waits::Wait wait;
  wait.of_script = true;
  wait.ready = [outcome] { return *outcome; };
  wait_for(api, request, std::move(wait));
}

void rule(Api& api, Request& request) {
  request.answer(api.automation.register_rule(request.client, request.message));
}

void rules(Api& api, Request& request) {
  request.answer(api.automation.rules());
}

void rule_off(Api& api, Request& request) {
  request.answer(api.automation.switch_off(request.client, request.message.value("rule", std::int64_t{0})));
}

void jobs(Api& api, Request& request) {
  request.answer(api.automation.jobs());
}

void job_off(Api& api, Request& request) {
  request.answer(api.automation.stop_job(request.client, request.message.value("job", "")));
}

}  // namespace footplate::host::operations
