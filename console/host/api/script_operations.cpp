#include "console/host/api/operations.h"

#include <algorithm>
#include <optional>
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

/// A wait of the script's, at most for `timeout_s`.
void leave_wait(Api& api, const Request& request, Waits::Wait wait, std::optional<double> timeout_s) {
  wait.of_script = true;
  wait.deadline = api.host.after(timeout_s);
  leave(api, request, std::move(wait));
}

/// Answers a request that has no value to tell.
void answer_done(const Request& request, const Result<void>& done) {
  request.answer(done.map([] { return Json::object(); }));
}

}  // namespace

/// A chunk's question to the person at its client; only a chunk whose `eval` said that there is one asks.
void wait_answer(Api& api, Request& request, const WaitAnswerRequest& fields) {
  Client& client = request.client;
  client.open_question = [answer = request.answer](bool yes) { answer(Json{{"yes", yes}}); };
  api.clients.send(client, {{"type", "question"}, {"question", ++client.questions}, {"text", fields.text}});
}

void wait_step(Api& api, Request& request, const WaitStepRequest& fields) {
  constexpr double kLast = 9e15;  // beyond any run, and a whole number in either type
  const auto step = fields.step > 0 ? static_cast<std::int64_t>(std::min(fields.step, kLast)) : 0;
  const auto ready = [&api, step]() -> std::optional<Result<Json>> {
    if (api.host.view.step() >= step) return Result<Json>(Json{{"step", api.host.view.step()}});
    return failure_of_the_end(api);
  };
  const auto late = [&api]() -> Result<Json> {
    return Json{{"step", api.host.view.step()}, {"timed_out", true}};
  };
  Waits::Wait wait = Waits::wait_for<Json>(request.answer, ready, late);
  wait.for_step = true;
  leave_wait(api, request, std::move(wait), fields.timeout_s);
}

void wait_event(Api& api, Request& request, const WaitEventRequest& fields) {
  const auto event = from_word<AwaitedEvent>(fields.event);
  if (!event)
    return request.answer(fail(ErrorKind::script, "run.wait knows no event '" + fields.event +
                                                      "'; there are " + all_words<AwaitedEvent>()));
  const auto ready = [&api, event = *event,
                      before = api.host.events[*event].count]() -> std::optional<Result<Json>> {
    const HostState::Happened& its = api.host.events[event];
    if (its.count > before) return Result<Json>(Json{{"step", api.host.view.step()}, {"event", its.last}});
    return failure_of_the_end(api);
  };
  const auto late = [&api]() -> Result<Json> {
    return Json{{"step", api.host.view.step()}, {"timed_out", true}};
  };
  leave_wait(api, request, Waits::wait_for<Json>(request.answer, ready, late), fields.timeout_s);
}

/// Logged metrics one after the other, none left out: {"next", "lines"}, as soon as there is one since
/// `since`, which is `next` of the answer before. Without `since` at once, and nothing but `next`.
void wait_lines(Api& api, Request& request, const WaitLinesRequest& fields) {
  constexpr std::size_t kMost = 200;  // in an answer
  if (!fields.since) return request.answer(Json{{"next", api.host.ring.next_sequence()}});
  const auto ready = [&api, next = *fields.since]() mutable -> std::optional<Result<Json>> {
    Json lines = Json::array();
    while (lines.size() < kMost) {
      const LoggedMetrics* logged = api.host.ring.next_of_training(next);
      if (logged == nullptr) break;
      lines.push_back(to_json(*logged));
    }
    if (!lines.empty()) return Result<Json>(Json{{"next", next}, {"lines", std::move(lines)}});
    return failure_of_the_end(api);
  };
  leave_wait(api, request, Waits::wait_for<Json>(request.answer, ready), std::nullopt);
}

void wait_seconds(Api& api, Request& request, const WaitSecondsRequest& fields) {
  const auto ready = [&api]() -> std::optional<Result<Json>> { return failure_of_the_end(api); };
  const auto late = [&api]() -> Result<Json> { return Json{{"step", api.host.view.step()}}; };
  leave_wait(api, request, Waits::wait_for<Json>(request.answer, ready, late), fields.seconds);
}

void wait_rules(Api& api, Request& request, const WaitRulesRequest& fields) {
  const Automation::Outcome outcome = api.automation.register_chunk(request.client, fields);
  const auto ready = [outcome]() -> std::optional<Result<Json>> {
    if (!*outcome) return std::nullopt;
    return (*outcome)->map([](const auto& numbers) { return Json{{"numbers", numbers}}; });
  };
  leave_wait(api, request, Waits::wait_for<Json>(request.answer, ready), std::nullopt);
}

void rule(Api& api, Request& request, const RuleRequest& fields) {
  if (!fields.spec) return request.answer(fail(ErrorKind::usage, "field 'spec' is missing"));
  request.answer(api.automation.register_rule(request.client, *fields.spec).map([](std::int64_t number) {
    return Json{{"rule", number}};
  }));
}

void rules(Api& api, Request& request) {
  request.answer(list_of(api.automation.rules()));
}

void rule_off(Api& api, Request& request, const RuleOffRequest& fields) {
  answer_done(request, api.automation.switch_off(request.client, fields.rule));
}

void jobs(Api& api, Request& request) {
  request.answer(list_of(api.automation.jobs()));
}

void job_off(Api& api, Request& request, const JobOffRequest& fields) {
  answer_done(request, api.automation.stop_job(request.client, fields.job));
}

}  // namespace footplate::host::operations
