#include "console/host/automation/automation.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "console/host/automation/rules_file.h"

namespace footplate::host {
namespace {

constexpr const char* kFile = "rules.json";

/// The number of "rule 3"; 0: the session isn't a rule's.
std::int64_t rule_of(const std::string& session) {
  constexpr std::string_view kRule = "rule ";
  return session.starts_with(kRule) ? std::atoll(session.c_str() + kRule.size()) : 0;
}

}  // namespace

Automation::Automation(std::filesystem::path run_directory, const Limits& limits, Ports ports)
    : run_(std::move(run_directory), limits, std::move(ports)),
      rules_(run_,
             [this](const Rule& rule) -> ScriptProcess& {
               return rule.job.empty() ? rules_process_ : jobs_.process_of(rule.job);
             }),
      chunks_(run_, rules_, [this] { save(/*durable=*/true); }),
      rules_process_(run_, ScriptRun::kFirstClient, "", rules_events()),
      jobs_(run_, rules_) {}

ScriptProcess::Events Automation::rules_events() {
  ScriptProcess::Events events;
  events.role = [this] { return chunks_.role(); };
  events.ended = [this](const Json& message) { chunks_.ended(message); };
  events.handled = [this](Firing firing, const Json& message) {
    rules_.handled(rules_process_, std::move(firing), message);
  };
  return events;
}

void Automation::begin(const Json& run, const Json& status, const Json& reports) {
  run_.started = run.value("started", "");
  run_.left = run.value("left", std::int64_t{0});
  run_.own.user = run.value("user", "");
  begun_here_ = true;
  load(reports);
  rules_.tell_sync();
  this->status(status);
}

void Automation::status(const Json& status) {
  run_.state = status.value("state", run_.state);
  run_.step_ms = number_from_json(status.value("step_ms", Json())).value_or(run_.step_ms);
  const bool at_work = run_.state != "starting" && !run_.state.empty() && run_.state != "ended";
  if (!begun_here_ || !at_work) return;
  if (!run_.placed) {
    run_.placed = true;
    if (run_.new_start) run_.table.new_start(run_.ports.step(), wall_clock_s(), run_.left);
  }
  if (run_.begun != run_.started) {
    run_.begun = run_.started;
    run_.dirty = true;
    rules_.fire(
        run_.table.on_event("start", {{"step", run_.ports.step()}, {"resumed", run_.ports.step() > 0}}));
  }
  rules_.fire(run_.table.at_step(run_.ports.step(), run_.step_ms));
}

void Automation::event(const std::string& topic, const Json& data, std::uint64_t hold) {
  if (!begun_here_) return;
  std::vector<Firing> firings;
  if (topic == "metrics" && data.contains("train/loss")) {
    if (rules_process_.runs()) chunks_.retry();
    firings = run_.table.on_event("log", run_.ports.metrics());
  } else if (topic == "eval" || topic == "ckpt" || topic == "warn") {
    firings = run_.table.on_event(topic, topic == "eval" ? [&] {
      Json all = run_.ports.metrics();
      all.update(data);
      return all;
    }() : data, data.value("rule", std::int64_t{0}));
  }
  rules_.fire(std::move(firings), hold);
  if (topic == "metrics") rules_.fire(run_.table.at_step(data.value("step", std::int64_t{0}), run_.step_ms));
}

void Automation::order_report(const Json& report) {
  const std::string state = report.value("state", "");
  const Json order = report.value("order", Json::object());
  const std::int64_t rule = rule_of(order.value("session", ""));
  const bool agreed = state == "committed" || state == "applied";
  if (Rule* its = run_.table.find(rule);
      its != nullptr && agreed && !order.value("calls", Json::array()).empty())
    its->called = run_.dirty = true;
  if (rule != 0 && (state == "committed" || state == "applied" || state == "refused")) rules_.decided(rule);
  if (state == "applied" && begun_here_) rules_.fire(run_.table.on_event("order", order_event(report), rule));
}

Json Automation::order_event(const Json& report) {
  const Json order = report.value("order", Json::object());
  const Json applied = report.value("applied", Json::object());
  return {{"id", report.value("id", Json())},
          {"step", applied.value("step", Json())},
          {"user", order.value("user", "")},
          {"session", order.value("session", "")},
          {"source", order.value("source", "")},
          {"moved", applied.value("moved", Json::array())},
          {"calls", order.value("calls", Json::array())}};
}

void Automation::settings(const Json& message) {
  for (ScriptProcess* process : all_processes()) process->send(message);
}

Automation::Outcome Automation::register_chunk(const Client& client, const Json& request) {
  return chunks_.add(client, request, rules_process_.runs());
}

Result<Json> Automation::register_rule(const Client& client, const Json& request) {
  return jobs_.register_rule(client, request);
}

Result<Json> Automation::switch_off(const Client& client, std::int64_t number) {
  Rule* rule = run_.table.find(number);
  if (rule == nullptr)
    return fail(ErrorKind::usage, "there is no rule " + std::to_string(number) + "; rules() lists them");
  if (rule->on()) rules_.switch_off(*rule, "switched off by " + client.user + " (" + client.session + ")");
  save(/*durable=*/true);
  return Json::object();
}

bool Automation::follows() const {
  const auto lives = [](const auto& entry) { return entry.second.on(); };
  return std::ranges::any_of(run_.table.all(), lives) || jobs_.any_runs();
}

Json Automation::rules() const {
  Json list = Json::array();
  for (const auto& [number, rule] : run_.table.all()) list.push_back(rule.to_json());
  return list;
}

std::vector<ScriptProcess*> Automation::all_processes() {
  std::vector<ScriptProcess*> list = jobs_.processes();
  list.insert(list.begin(), &rules_process_);
  return list;
}

std::vector<LuaSession*> Automation::processes() {
  std::vector<LuaSession*> list;
  for (ScriptProcess* process : all_processes())
    if (process->runs()) list.push_back(&process->lua());
  return list;
}

std::optional<Automation::Clock::time_point> Automation::deadline() const {
  std::optional<Clock::time_point> next;
  const auto consider = [&next](const std::optional<Clock::time_point>& time) {
    if (time && (!next || *time < *next)) next = time;
  };
  consider(rules_process_.deadline());
  consider(jobs_.deadline());
  if (const auto due = run_.table.next_due(); due && run_.placed)
    consider(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(std::max(0.0, *due - wall_clock_s()))));
  return next;
}

void Automation::on_time(Clock::time_point now) {
  run_.now = now;
  if (!begun_here_) return;
  if (run_.placed) rules_.fire(run_.table.at_time(wall_clock_s(), run_.ports.step()));
  rules_process_.on_time();
  run_rules();
  jobs_.on_time();
  if (std::exchange(run_.forget, false)) chunks_.forget_dead();
  if (run_.dirty) save(/*durable=*/false);
}

/// Chunks first: the functions that are due live in what they leave behind.
void Automation::run_rules() {
  ScriptProcess& process = rules_process_;
  if (!run_.placed || (process.queue().empty() && !chunks_.has_next())) return;
  if (!process.runs()) {
    if (!process.start({{"kind", "rules"}, {"resumed", false}})) return;
    chunks_.process_started();
  }
  if (process.lua().handling() || chunks_.busy() || chunks_.send_next(process.lua())) return;
  rules_.send_next(process);
}

bool Automation::ending() {
  if (!begun_here_) return false;
  if (!run_.stopped) {
    run_.stopped = true;
    rules_.fire(run_.table.on_event("stop", {{"step", run_.ports.step()}}));
  }
  return rules_process_.has_work() || jobs_.have_work();
}

void Automation::end(const Error& error) {
  run_.state = "ended";
  for (ScriptProcess* process : all_processes()) {
    process->queue().clear();
    process->end(error);
  }
  if (begun_here_) save(/*durable=*/true);
}

void Automation::load(const Json& reports) {
  KeptRules kept;
  try {
    kept = KeptRules::read(run_.directory / kFile);
    chunks_.load(kept.chunks);
    for (const Json& record : kept.rules) {
      Rule rule = Rule::from_record(record);
      run_.table.all()[rule.number] = std::move(rule);
    }
  } catch (const Json::exception& error) {
    run_.ports.log(std::string("rules.json can't be read, its rules are lost: ") + error.what());
  }
  run_.new_start = kept.started != run_.started;
  run_.begun = kept.begun;
  chunks_.next_number = kept.next_chunk;
  run_.table.next_number = kept.next_rule;
  for (auto& [number, rule] : run_.table.all())
    if (rule.on() && rule.fired_at >= 0) settle(rule, reports);
  jobs_.load(std::move(kept.jobs));
}

/// A rule whose function the last console had given out: what it has ordered, rank 0 knows; where that is
/// nothing, it is due again.
void Automation::settle(Rule& rule, const Json& reports) {
  const std::string session = "rule " + std::to_string(rule.number);
  const bool ordered = std::any_of(reports.begin(), reports.end(), [&](const Json& report) {
    const std::string state = report.value("state", "");
    if (state == "aborted" || state == "withdrawn") return false;
    if (report.value("order", Json::object()).value("session", "") != session) return false;
    const Json& applied = report.contains("applied") ? report["applied"] : report;
    return applied.value("step", rule.fired_at) >= rule.fired_at;
  });
  if (run_.new_start || !ordered) return rule.fire_again();
  rule.fired_at = -1;
  ++rule.runs;
  if (rule.fires_once()) rule.state = Rule::State::done;
}

void Automation::save(bool durable) {
  run_.dirty = false;
  KeptRules kept;
  kept.started = run_.started;
  kept.begun = run_.begun;
  kept.next_chunk = chunks_.next_number;
  kept.next_rule = run_.table.next_number;
  kept.jobs = jobs_.kept();
  kept.chunks = chunks_.records();
  for (const auto& [number, rule] : run_.table.all())
    if (rule.job.empty()) kept.rules.push_back(rule.to_record());
  if (auto written = kept.write(run_.directory / kFile, durable); !written)
    run_.ports.log(written.error().message);
}

}  // namespace footplate::host
