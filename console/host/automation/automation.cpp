#include "console/host/automation/automation.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "console/host/automation/rules_file.h"
#include "console/host/automation/script_events.h"

namespace footplate::host {
namespace {

constexpr const char* kFile = "rules.json";
constexpr const char* kDamagedFile = "rules.json.damaged";

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
  events.ended = [this](const ChunkEnd& end) { chunks_.ended(end); };
  events.handled = [this](Firing firing, const ChunkEnd& end) {
    rules_.handled(rules_process_, std::move(firing), end);
  };
  return events;
}

void Automation::begin(const RunIdentity& run, const RunStatus& status,
                       const std::vector<const OrderReport*>& reports) {
  run_.started = run.started;
  run_.left = run.left;
  run_.own.user = run.user;
  begun_here_ = true;
  load(reports);
  rules_.tell_sync();
  this->status(status);
}

void Automation::status(const RunStatus& status) {
  run_.state = status.state;
  run_.step_ms = status.step_ms.value_or(run_.step_ms);
  const bool at_work = run_.state != RunState::starting && run_.state != RunState::ended;
  if (!begun_here_ || !at_work) return;
  const std::int64_t step = run_.ports.step();
  if (!run_.placed) {
    run_.placed = true;
    if (run_.new_start) run_.table.new_start(step, wall_clock_s(), run_.left);
  }
  if (run_.begun != run_.started) {
    run_.begun = run_.started;
    run_.dirty = true;
    rules_.fire(run_.table.on_event(RuleEvent::start, {{"step", step}, {"resumed", step > 0}}, step));
  }
  rules_.fire(run_.table.at_step(step, run_.step_ms));
}

void Automation::event(const EventData& data, std::uint64_t hold) {
  if (!begun_here_) return;
  std::vector<Firing> firings;
  const auto due = [&](RuleEvent event, std::int64_t step, std::int64_t by = 0) {
    firings = run_.table.on_event(event, event_for_scripts(data, run_.ports.metrics()), step, by);
  };
  const auto* logged = std::get_if<LoggedMetrics>(&data);
  if (logged != nullptr && logged->is_of_training()) {
    if (rules_process_.runs()) chunks_.retry();
    due(RuleEvent::log, logged->step());
  } else if (const auto* evaluation = std::get_if<EvaluationResult>(&data)) {
    due(RuleEvent::eval, evaluation->step);
  } else if (const auto* save = std::get_if<SaveResult>(&data)) {
    due(RuleEvent::ckpt, save->step);
  } else if (const auto* warning = std::get_if<Warning>(&data)) {
    due(RuleEvent::warn, warning->step.value_or(0), warning->rule.value_or(0));
  }
  rules_.fire(std::move(firings), hold);
  if (logged != nullptr) rules_.fire(run_.table.at_step(logged->step(), run_.step_ms));
}

void Automation::order_report(const OrderReport& report) {
  const bool applied = report.state == OrderState::applied;
  const bool agreed = applied || report.state == OrderState::committed;
  const std::int64_t rule = report.order ? rule_of(report.order->session) : 0;
  if (Rule* its = run_.table.find(rule); its != nullptr && agreed && !report.order->calls.empty())
    its->called = run_.dirty = true;
  if (rule != 0 && (agreed || report.state == OrderState::refused)) rules_.decided(rule);
  if (applied && begun_here_) {
    const std::int64_t step = report.applied ? report.applied->step : 0;
    rules_.fire(run_.table.on_event(RuleEvent::order, order_event(report), step, rule));
  }
}

void Automation::settings(const SettingsUpdate& update) {
  for (ScriptProcess* process : all_processes()) process->send(update);
}

Automation::Outcome Automation::register_chunk(const Client& client, RuleChunks::Registration registration) {
  return chunks_.add(client, std::move(registration), rules_process_.runs());
}

Result<std::int64_t> Automation::register_rule(const Client& client, const RuleSpec& spec) {
  return jobs_.register_rule(client, spec);
}

Result<void> Automation::switch_off(const Client& client, std::int64_t number) {
  Rule* rule = run_.table.find(number);
  if (rule == nullptr)
    return fail(ErrorKind::usage, "there is no rule " + std::to_string(number) + "; rules() lists them");
  if (rule->on()) rules_.switch_off(*rule, "switched off by " + client.user + " (" + client.session + ")");
  save(/*durable=*/true);
  return {};
}

bool Automation::follows() const {
  const auto lives = [](const auto& entry) { return entry.second.on(); };
  return std::ranges::any_of(run_.table.all(), lives) || jobs_.any_runs();
}

std::vector<RuleStatus> Automation::rules() const {
  std::vector<RuleStatus> list;
  for (const auto& [number, rule] : run_.table.all()) list.push_back(rule.status());
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
    if (!process.start({})) return;
    chunks_.process_started();
  }
  if (process.lua().handling() || chunks_.busy() || chunks_.send_next(process.lua())) return;
  rules_.send_next(process);
}

bool Automation::ending() {
  if (!begun_here_) return false;
  if (!run_.stopped) {
    run_.stopped = true;
    const std::int64_t step = run_.ports.step();
    rules_.fire(run_.table.on_event(RuleEvent::stop, {{"step", step}}, step));
  }
  return rules_process_.has_work() || jobs_.have_work();
}

void Automation::end(const Error& error) {
  run_.state = RunState::ended;
  for (ScriptProcess* process : all_processes()) {
    process->queue().clear();
    process->end(error);
  }
  if (begun_here_) save(/*durable=*/true);
}

void Automation::load(const std::vector<const OrderReport*>& reports) {
  std::vector<std::string> lost;
  KeptRules kept = KeptRules::read(run_.directory / kFile, lost);
  if (!lost.empty()) keep_damaged(lost);
  chunks_.load(kept.chunks);
  for (const KeptRule& record : kept.rules) run_.table.all()[record.status.rule] = Rule::from_record(record);
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
void Automation::settle(Rule& rule, const std::vector<const OrderReport*>& reports) {
  const std::string session = "rule " + std::to_string(rule.number);
  const bool ordered = std::ranges::any_of(reports, [&](const OrderReport* report) {
    if (report->state == OrderState::aborted || report->state == OrderState::withdrawn) return false;
    if (!report->order || report->order->session != session) return false;
    return (report->applied ? report->applied->step : report->step.value_or(rule.fired_at)) >= rule.fired_at;
  });
  if (run_.new_start || !ordered) return rule.fire_again();
  rule.fired_at = -1;
  ++rule.runs;
  if (rule.fires_once()) rule.state = RuleState::done;
}

/// The next save replaces the file: what can't be read of it stays beside it.
void Automation::keep_damaged(const std::vector<std::string>& lost) {
  std::error_code failed;
  std::filesystem::copy_file(run_.directory / kFile, run_.directory / kDamagedFile,
                             std::filesystem::copy_options::overwrite_existing, failed);
  for (const std::string& one : lost) run_.ports.log("rules.json can't be read in full: " + one);
  run_.ports.log("the file as it was is " + std::string(failed ? "lost: " + failed.message() : kDamagedFile));
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
    if (rule.job.empty()) kept.rules.push_back(rule.record());
  if (auto written = kept.write(run_.directory / kFile, durable); !written) {
    run_.ports.log(written.error().message);
    run_.dirty = true;  // it is tried again
  }
}

}  // namespace footplate::host
