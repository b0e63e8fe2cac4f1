#include "console/host/automation/automation.h"

#include <algorithm>

#include "protocol/value.h"

namespace footplate::host {
namespace {

constexpr std::uint64_t kFirstClient = std::uint64_t{1} << 32;  ///< beyond any real client's number
constexpr std::size_t kLongestQueue = 64;  ///< firings of an actor; on()'s events beyond are dropped
constexpr int kMostErrors = 3;             ///< in a row
constexpr int kMostTries = 3;              ///< of a handler whose process was killed by somebody else
constexpr double kSlow_ms = 100;           ///< a handler that takes longer is named once
constexpr std::size_t kQuickLosses = 5;
constexpr std::chrono::seconds kQuick{10};
constexpr std::chrono::seconds kBackoff{1};

std::string handle_id(std::uint64_t number) {
  return "h" + std::to_string(number);
}

std::string message_of(const Json& message) {
  return error_from_json(message.value("error", Json())).message;
}

/// The number of "rule 3"; 0: the session isn't a rule's.
std::int64_t rule_of(const std::string& session) {
  constexpr std::string_view kRule = "rule ";
  return session.starts_with(kRule) ? std::atoll(session.c_str() + kRule.size()) : 0;
}

}  // namespace

Automation::Automation(std::filesystem::path run_directory, const Limits& limits, Ports ports)
    : directory_(std::move(run_directory)),
      limits_(limits),
      ports_(std::move(ports)),
      rules_actor_(kFirstClient),
      own_(kFirstClient + 1, Connection(Fd(), 1)),
      now_(Clock::now()) {
  rules_actor_.client.session = own_.session = "rules";
  rules_actor_.client.role = own_.role = Role::admin;
}

void Automation::begin(const Json& run, const Json& status, const Json& reports) {
  started_ = run.value("started", "");
  left_ = run.value("left", std::int64_t{0});
  own_.user = rules_actor_.client.user = run.value("user", "");
  begun_here_ = true;
  load(reports);
  load_jobs();
  tell_sync();
  this->status(status);
}

// --- what happens in the run ---

void Automation::status(const Json& status) {
  run_state_ = status.value("state", run_state_);
  step_ms_ = number_from_json(status.value("step_ms", Json())).value_or(step_ms_);
  const bool at_work = run_state_ != "starting" && !run_state_.empty() && run_state_ != "ended";
  if (!begun_here_ || !at_work) return;
  if (!placed_) {
    placed_ = true;
    if (new_start_) table_.new_start(ports_.step(), wall_clock_s(), left_);
  }
  if (begun_ != started_) {
    begun_ = started_;
    dirty_ = true;
    fire(table_.on_event("start", {{"step", ports_.step()}, {"resumed", ports_.step() > 0}}));
  }
  fire(table_.at_step(ports_.step(), step_ms_));
}

void Automation::event(const std::string& topic, const Json& data, std::uint64_t hold) {
  if (!begun_here_) return;
  std::vector<Firing> firings;
  if (topic == "metrics" && data.contains("train/loss")) {
    retry_registrations();
    firings = table_.on_event("log", ports_.metrics());
  } else if (topic == "eval" || topic == "ckpt" || topic == "warn") {
    firings = table_.on_event(topic, topic == "eval" ? [&] {
      Json all = ports_.metrics();
      all.update(data);
      return all;
    }() : data, data.value("rule", std::int64_t{0}));
  }
  fire(std::move(firings), hold);
  if (topic == "metrics") fire(table_.at_step(data.value("step", std::int64_t{0}), step_ms_));
}

void Automation::order_report(const Json& report) {
  const std::string state = report.value("state", "");
  const Json order = report.value("order", Json::object());
  const std::int64_t rule = rule_of(order.value("session", ""));
  const bool agreed = state == "committed" || state == "applied";
  if (Rule* its = table_.find(rule); its != nullptr && agreed && !order.value("calls", Json::array()).empty())
    its->called = dirty_ = true;
  if (rule != 0 && (state == "committed" || state == "applied" || state == "refused"))
    for (const auto& [hold, rules] : std::map(holds_)) release(hold, rule);
  if (state == "applied" && begun_here_) fire(table_.on_event("order", order_event(report), rule));
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
  for (Actor* actor : actors())
    if (actor->client.lua) actor->client.lua->send(message);
}

// --- running what is due ---

void Automation::fire(std::vector<Firing> firings, std::uint64_t hold) {
  std::set<std::int64_t> waited_for;
  for (Firing& firing : firings) {
    Rule& rule = *table_.find(firing.rule);
    if (rule.on_schedule()) {
      rule.fired_at = ports_.step();
      dirty_ = true;
    }
    if (firing.at_step && *firing.at_step <= ports_.step())
      warn("rule " + std::to_string(rule.number) + ", " + rule.text() + ": the run is at step " +
           std::to_string(ports_.step()) + " already; it applies at the next step");
    const bool sync = hold != 0 && rule.sync();
    if (sync) {
      firing.hold = hold;
      waited_for.insert(rule.number);
    }
    queue(actor_of(rule), std::move(firing), sync);
  }
  if (hold == 0) return;
  if (waited_for.empty())
    ports_.to_rank({{"type", "release"}, {"hold", hold}});
  else
    holds_[hold] = std::move(waited_for);
}

/// A rule that hasn't come round to the last one gets the newest step or metrics; whole events wait in line.
void Automation::queue(Actor& actor, Firing firing, bool first) {
  const Rule& rule = *table_.find(firing.rule);
  const std::string event = rule.kind() == "on" ? rule.spec.value("event", "") : "log";
  const auto waiting = std::find_if(actor.queue.begin(), actor.queue.end(),
                                    [&](const Firing& other) { return other.rule == firing.rule; });
  if (event == "log" && waiting != actor.queue.end()) {
    release(waiting->hold, firing.rule);
    *waiting = std::move(firing);
  } else if (rule.kind() == "on" && actor.queue.size() >= kLongestQueue) {
    // The others have one firing in line at most, and would not come back.
    warn("rule " + std::to_string(rule.number) + ", " + rule.text() +
             ", doesn't keep up: an event was left out",
         {{"rule", rule.number}});
    release(firing.hold, firing.rule);
  } else if (first) {
    actor.queue.push_front(std::move(firing));
  } else {
    actor.queue.push_back(std::move(firing));
  }
}

void Automation::pump(Actor& actor) {
  if (actor.over() || !placed_) return;
  const bool runs = actor.client.lua && actor.client.lua->has_process();
  const bool wanted = actor.job.empty() ? !actor.queue.empty() || !actor.unregistered.empty()
                                        : !actor.script_sent || !actor.queue.empty();
  if (!wanted || (!runs && !start(actor))) return;
  if (!actor.job.empty() && !actor.script_sent) return start_script(actor);
  send_next(actor);
}

bool Automation::start(Actor& actor) {
  if (now_ < actor.start_at) return false;
  if (!actor.client.lua) {
    LuaSession::Events events;
    events.request = [this, &actor](const Json& message) {
      const bool handler = actor.client.lua->in_handler() && actor.firing;
      const Rule* rule = handler ? table_.find(actor.firing->rule) : nullptr;
      Client& from = actor.client;
      from.session = rule != nullptr     ? "rule " + std::to_string(rule->number)
                     : actor.job.empty() ? "rules"
                                         : "job:" + actor.job;
      from.user = rule != nullptr ? rule->user : own_.user;
      from.role = rule != nullptr ? rule->role : role_of_registering(actor);
      if (handler && message.value("op", "") == "order") actor.firing->ordered = true;
      ports_.request(from, message);
    };
    events.output = [this, &actor](const Json& message) { job_output(actor, message); };
    events.ended = [this, &actor](const Json& message) { ended(actor, message); };
    actor.client.lua = std::make_unique<LuaSession>(limits_, std::move(events));
  }
  auto process = ports_.process();
  if (!process) {
    ports_.log(process.error().message);
    actor.start_at = now_ + kBackoff;
    return false;
  }
  actor.client.session = actor.job.empty() ? "rules" : "job:" + actor.job;
  Json hello = ports_.hello(actor.client);
  hello["kind"] = actor.job.empty() ? "rules" : "job";
  hello["resumed"] = actor.resumed;
  if (!actor.job.empty()) {
    hello["arguments"] = actor.script.value("arguments", Json::array());
    hello["run"]["script"] = actor.script.value("path", actor.job);
  }
  actor.client.lua->take(*std::move(process), hello);
  if (!actor.job.empty()) return true;
  actor.unregistered.clear();
  for (const Chunk& chunk : chunks_) actor.unregistered.push_back(chunk.id);
  return true;
}

/// A chunk that runs again for its rules may do what its session may; a job is the owner's.
Role Automation::role_of_registering(const Actor& actor) const {
  for (const Chunk& chunk : chunks_)
    if (actor.registering == chunk.id) return chunk.role;
  return Role::admin;
}

void Automation::send_next(Actor& actor) {
  LuaSession& lua = *actor.client.lua;
  if (lua.handling() || actor.registering) return;
  if (!actor.unregistered.empty()) {
    const std::int64_t id = actor.unregistered.front();
    actor.unregistered.pop_front();
    const auto chunk =
        std::find_if(chunks_.begin(), chunks_.end(), [id](const Chunk& one) { return one.id == id; });
    if (chunk == chunks_.end()) return send_next(actor);
    actor.registering = id;
    return lua.eval(
        {{"type", "register"}, {"id", "r"}, {"chunk", id}, {"code", chunk->code}, {"name", chunk->name}},
        now_, limits_.chunk_s);
  }
  while (!actor.queue.empty()) {
    Firing firing = std::move(actor.queue.front());
    actor.queue.pop_front();
    const Rule* rule = table_.find(firing.rule);
    if (rule == nullptr || !rule->on()) {
      release(firing.hold, firing.rule);
      continue;
    }
    const double budget_ms = rule->spec.value("budget_ms", 2000.0);
    Json message = {{"type", "handle"},
                    {"id", handle_id(++last_handle_)},
                    {"chunk", rule->chunk},
                    {"index", rule->spec.value("index", std::int64_t{0})},
                    {"name", "rule " + std::to_string(rule->number)},
                    {"text", "rule " + std::to_string(rule->number) + ", " + rule->text()},
                    {"source", rule->spec.value("source", "")},
                    {"budget_ms", budget_ms},
                    {"event", firing.event}};
    if (firing.at_step) message["at_step"] = *firing.at_step;
    if (rule->kind() == "stop_when") message["stop_when"] = true;
    firing.ordered = false;
    actor.firing = std::move(firing);
    return lua.handle(message, budget_ms / 1e3);
  }
}

void Automation::ended(Actor& actor, const Json& message) {
  const std::string id = message.value("id", "");
  const bool lost = message.value("lost", false);
  if (lost) {
    ports_.forget_waits(actor.client.id);
    if (actor.losses.empty() || actor.losses.back() != now_) actor.losses.push_back(now_);
    if (actor.losses.size() > kQuickLosses) actor.losses.pop_front();
    if (actor.losses.size() == kQuickLosses && now_ - actor.losses.front() < kQuick)
      actor.start_at = now_ + kBackoff;
  }
  if (id == "r") return registered(actor, message);
  if (id == "script") return script_ended(actor, message);
  handler_ended(actor, message);
}

void Automation::handler_ended(Actor& actor, const Json& message) {
  if (!actor.firing) return;
  Firing firing = *std::exchange(actor.firing, std::nullopt);
  release(firing.hold, firing.rule);
  Rule* rule = table_.find(firing.rule);
  if (rule == nullptr) return;
  if (std::exchange(rule->fired_at, -1) >= 0) dirty_ = true;
  if (message.value("type", "") == "error") return retry_or_fail(actor, std::move(firing), message);
  ++rule->runs;
  rule->errors_in_a_row = 0;
  const double ran_ms =
      message.value("value", Json::object()).value("value", Json::object()).value("ran_ms", 0.0);
  if (ran_ms > kSlow_ms && !rule->said_slow) {
    rule->said_slow = true;
    warn("rule " + std::to_string(rule->number) + ", " + rule->text() + ", took " +
             shortest(std::round(ran_ms)) + " ms (its budget_ms is " +
             shortest(rule->spec.value("budget_ms", 0.0)) + "); said once",
         {{"rule", rule->number}});
  }
  if (!rule->fires_once()) return;
  rule->state = Rule::State::done;
  dirty_ = true;
  forget_ = true;
}

/// Killed for its own fault, or an error of its own: an error. Killed by somebody else: again, unless what it
/// wanted is on its way.
void Automation::retry_or_fail(Actor& actor, Firing firing, const Json& message) {
  Rule& rule = *table_.find(firing.rule);
  const std::string error = message_of(message);
  const bool own_fault = !message.value("lost", false) || error.find("was killed") != std::string::npos;
  if (!own_fault && !firing.ordered && ++firing.tries < kMostTries) {
    if (rule.on_schedule()) rule.fired_at = ports_.step();
    actor.queue.push_front(std::move(firing));
    return;
  }
  if (own_fault)
    return failed(rule, error, std::max(ports_.step(), firing.event.value("step", std::int64_t{0})));
  ++rule.runs;
  if (rule.fires_once()) rule.state = Rule::State::done;
  dirty_ = true;
}

void Automation::failed(Rule& rule, const std::string& error, std::int64_t step) {
  if (run_state_ == "ending" || run_state_ == "ended" || stopping_) return;
  const std::string text = "rule " + std::to_string(rule.number) + ", " + rule.text() + ", failed at step " +
                           std::to_string(step) + ": " + error;
  warn(text, {{"rule", rule.number}});
  ++rule.runs;
  if (rule.fires_once()) {
    rule.state = Rule::State::done;
    rule.why = error;
  } else if (++rule.errors_in_a_row >= kMostErrors) {
    switch_off(rule, "three errors in a row");
  }
  dirty_ = true;
  const std::string what = policy(rule);
  if (what == "pause") act("run.pause", {{"reason", text}});
  if (what == "stop") act("run.stop", {{"error", text}});
}

void Automation::switch_off(Rule& rule, const std::string& why) {
  rule.state = Rule::State::off;
  rule.why = why;
  dirty_ = true;
  publish("rule",
          {{"rule", rule.number},
           {"text", "rule " + std::to_string(rule.number) + ", " + rule.text() + ", is off: " + why}});
  forget_ = true;
  tell_sync();
}

Result<Json> Automation::switch_off(const Client& client, std::int64_t number) {
  Rule* rule = table_.find(number);
  if (rule == nullptr)
    return fail(ErrorKind::usage, "there is no rule " + std::to_string(number) + "; rules() lists them");
  if (rule->on()) switch_off(*rule, "switched off by " + client.user + " (" + client.session + ")");
  save(/*durable=*/true);
  return Json::object();
}

/// An order of the console's own, in the name of the run's owner.
void Automation::act(const std::string& action, const Json& arguments) {
  Order order;
  order.source = "-- " + arguments.begin()->get<std::string>();
  order.calls.push_back({action, arguments});
  stopping_ = stopping_ || action == "run.stop";
  if (const auto ref = ports_.submit(own_, std::move(order)); !ref) ports_.log(ref.error().message);
}

void Automation::release(std::uint64_t hold, std::int64_t rule) {
  const auto found = holds_.find(hold);
  if (found == holds_.end() || found->second.erase(rule) == 0 || !found->second.empty()) return;
  holds_.erase(found);
  ports_.to_rank({{"type", "release"}, {"hold", hold}});
}

void Automation::tell_sync() {
  const Json budgets = table_.sync_budgets();
  if (budgets == told_sync_) return;
  told_sync_ = budgets;
  ports_.to_rank({{"type", "sync"}, {"topics", budgets}});
}

void Automation::publish(const std::string& topic, const Json& data) {
  ports_.to_rank({{"type", "publish"}, {"topic", topic}, {"data", data}});
}

void Automation::warn(const std::string& text, const Json& more) {
  Json data = {{"kind", "script"}, {"text", text}};
  data.update(more);
  publish("warn", data);
}

bool Automation::follows() const {
  const auto lives = [](const auto& entry) { return entry.second.on(); };
  const auto runs = [](const Actor& job) { return job.state == "running"; };
  return std::any_of(table_.all().begin(), table_.all().end(), lives) ||
         std::any_of(jobs_.begin(), jobs_.end(), runs);
}

Json Automation::rules() const {
  Json list = Json::array();
  for (const auto& [number, rule] : table_.all()) list.push_back(rule.to_json());
  return list;
}

Automation::Actor& Automation::actor_of(const Rule& rule) {
  if (rule.job.empty()) return rules_actor_;
  return *std::find_if(jobs_.begin(), jobs_.end(), [&](const Actor& job) { return job.job == rule.job; });
}

std::vector<Automation::Actor*> Automation::actors() {
  std::vector<Actor*> list = {&rules_actor_};
  for (Actor& job : jobs_) list.push_back(&job);
  return list;
}

// --- the loop ---

std::vector<LuaSession*> Automation::processes() {
  std::vector<LuaSession*> list;
  for (Actor* actor : actors())
    if (actor->client.lua && actor->client.lua->has_process()) list.push_back(actor->client.lua.get());
  return list;
}

std::optional<Automation::Clock::time_point> Automation::deadline() const {
  std::optional<Clock::time_point> next;
  const auto consider = [&next](const std::optional<Clock::time_point>& time) {
    if (time && (!next || *time < *next)) next = time;
  };
  const auto look = [&](const Actor& actor) {
    if (actor.client.lua) consider(actor.client.lua->deadline());
    if (actor.start_at > now_) consider(actor.start_at);
  };
  look(rules_actor_);
  for (const Actor& job : jobs_) look(job);
  if (const auto due = table_.next_due(); due && placed_)
    consider(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                std::chrono::duration<double>(std::max(0.0, *due - wall_clock_s()))));
  return next;
}

void Automation::on_time(Clock::time_point now) {
  now_ = now;
  if (!begun_here_) return;
  if (placed_) fire(table_.at_time(wall_clock_s(), ports_.step()));
  for (Actor* actor : actors()) {
    if (actor->client.lua) actor->client.lua->on_time(now);
    look_after(*actor);
    pump(*actor);
  }
  if (std::exchange(forget_, false)) forget_dead_chunks();
  if (dirty_) save(/*durable=*/false);
}

bool Automation::ending() {
  if (!begun_here_) return false;
  if (!stopped_) {
    stopped_ = true;
    fire(table_.on_event("stop", {{"step", ports_.step()}}));
  }
  bool busy = false;
  for (const Actor* actor : actors())
    busy = busy || (!actor->over() && (!actor->queue.empty() || actor->firing));
  return busy;
}

void Automation::end(const Error& error) {
  run_state_ = "ended";
  for (Actor* actor : actors()) {
    actor->queue.clear();
    if (actor->client.lua) actor->client.lua->end(error);
  }
  if (begun_here_) save(/*durable=*/true);
}

}  // namespace footplate::host
