#include "console/host/automation/job_scripts.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

namespace footplate::host {
namespace {

constexpr std::uint64_t kFirstJob = ScriptRun::kFirstClient + 2;
constexpr int kMostRestarts = 5;  ///< of a job whose process is killed

}  // namespace

void JobScripts::load(Json kept) {
  kept_ = std::move(kept);
  std::ifstream file(run_.directory / "jobs" / "jobs.json");
  const Json plan = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!plan.is_object()) return;
  run_.unattended = plan.value("unattended", false);
  given_ = plan.value("given", std::int64_t{0});
  for (const Json& script : plan.value("jobs", Json::array())) add(script);
}

void JobScripts::add(const Json& script) {
  ScriptProcess::Events events;
  const std::size_t place = jobs_.size();
  const auto its = [this, place]() -> Job& {
    return *std::next(jobs_.begin(), static_cast<std::ptrdiff_t>(place));
  };
  events.role = [] { return Role::admin; };  // a job is the owner's
  events.ended = [this, its](const Json& message) { script_ended(its(), message); };
  events.handled = [this, its](Firing firing, const Json& message) {
    rules_.handled(its().process, std::move(firing), message);
  };
  Job& job = jobs_.emplace_back(run_, kFirstJob + place, script.value("name", "job"), std::move(events));
  job.script = script;
  const Json before = kept_.value(job.name(), Json());
  job.resumed = before.is_object();
  job.begins = !job.resumed || before.value("started", "") != run_.started;
  if (before.is_object() && before.value("state", "") == "stopped" &&
      before.value("given", given_) == given_) {
    job.state = "stopped";
    job.script_sent = true;
    return;
  }
  // One that had run to its end, without rules, before this console took over: it isn't run again for that.
  if (job.resumed && before.value("started", "") == run_.started && before.value("state", "") == "done") {
    job.state = "done";
    job.script_sent = true;
  }
}

/// Its script first, then the functions of its rules, within the script's waits or after it.
void JobScripts::run(Job& job) {
  ScriptProcess& process = job.process;
  if (job.over() || !run_.placed || (job.script_sent && process.queue().empty())) return;
  if (!process.runs() && !process.start({{"kind", "job"},
                                         {"resumed", job.resumed},
                                         {"arguments", job.script.value("arguments", Json::array())},
                                         {"run", {{"script", job.script.value("path", job.name())}}}}))
    return;
  if (!job.script_sent) return start_script(job);
  if (!process.lua().handling()) rules_.send_next(process);
}

void JobScripts::on_time() {
  for (Job& job : jobs_) {
    job.process.on_time();
    look_after(job);
    run(job);
  }
}

std::optional<ScriptRun::Clock::time_point> JobScripts::deadline() const {
  std::optional<ScriptRun::Clock::time_point> next;
  for (const Job& job : jobs_)
    if (const auto time = job.process.deadline(); time && (!next || *time < *next)) next = time;
  return next;
}

bool JobScripts::any_runs() const {
  return std::ranges::any_of(jobs_, [](const Job& job) { return job.state == "running"; });
}

bool JobScripts::have_work() const {
  return std::ranges::any_of(jobs_, [](const Job& job) { return !job.over() && job.process.has_work(); });
}

ScriptProcess& JobScripts::process_of(const std::string& job) {
  return std::ranges::find_if(jobs_, [&](const Job& one) { return one.name() == job; })->process;
}

std::vector<ScriptProcess*> JobScripts::processes() {
  std::vector<ScriptProcess*> list;
  for (Job& job : jobs_) list.push_back(&job.process);
  return list;
}

void JobScripts::start_script(Job& job) {
  job.script_sent = true;
  job.state = "running";
  std::ifstream file(run_.directory / "jobs" / job.script.value("file", ""), std::ios::binary);
  const std::string code{std::istreambuf_iterator<char>(file), {}};
  keep_state(job);
  job.process.lua().eval({{"type", "eval"},
                          {"id", "script"},
                          {"code", code},
                          {"name", job.script.value("path", job.name())},
                          {"timeout_s", 30.0}},
                         run_.now, std::nullopt);
}

/// From the top, as after a restart of the run: its rules come with it. False: it was lost too often.
bool JobScripts::restart_script(Job& job, const std::string& why) {
  if (++job.restarts > kMostRestarts || run_.state == "ended" || run_.stopped) return false;
  std::erase_if(run_.table.all(), [&](const auto& item) { return item.second.job == job.name(); });
  job.process.queue().clear();
  job.script_sent = false;
  job.state = "running";
  job.resumed = true;
  run_.warn("job " + job.name() + " is started again: " + why, {{"job", job.name()}});
  rules_.tell_sync();
  return true;
}

/// A job whose script has ended and whose process was killed: its rules' functions were in there.
void JobScripts::look_after(Job& job) {
  if (job.process.runs() || !job.script_sent || job.state != "rules") return;
  if (!restart_script(job, "its process was killed")) job.state = "failed";
}

void JobScripts::script_ended(Job& job, const Json& message) {
  if (job.state == "stopped") return;
  const auto own = [&](const auto& item) { return item.second.job == job.name(); };
  const std::string error = error_from_json(message.value("error", Json())).message;
  if (message.value("lost", false) && restart_script(job, error)) return;
  const bool failed = message.value("type", "") == "error";
  job.state = failed ? "failed" : "done";
  const bool rules = std::any_of(run_.table.all().begin(), run_.table.all().end(),
                                 [&](const auto& item) { return own(item) && item.second.on(); });
  if (!failed && rules) job.state = "rules";
  keep_state(job);
  if (!failed || run_.stopped || run_.ends()) return;
  job.error = error;
  rules_.switch_off_all(job.name(), "its job failed");
  const std::string text = "job " + job.name() + " failed: " + job.error;
  job.process.output().note(text);
  run_.warn(text, {{"job", job.name()}});
  if (run_.unattended) run_.act("run.stop", {{"error", text}});
}

void JobScripts::keep_state(const Job& job) {
  kept_[job.name()] = {{"started", run_.started}, {"given", given_}, {"state", job.state}};
  run_.dirty = true;
}

Result<Json> JobScripts::stop(const Client& client, const std::string& name) {
  const auto job =
      std::find_if(jobs_.begin(), jobs_.end(), [&](const Job& one) { return one.name() == name; });
  if (job == jobs_.end()) {
    std::vector<std::string> known;
    for (const Job& one : jobs_) known.push_back(one.name());
    const std::string near = nearest(name, known);
    return fail(ErrorKind::usage,
                "there is no job '" + name + "'" +
                    (near.empty() ? "; jobs() lists them" : "; did you mean " + near + "?"));
  }
  if (job->state != "running" && job->state != "rules")
    return fail(ErrorKind::usage, "job " + name + " has ended already: " + job->state);
  job->state = "stopped";
  job->script_sent = true;
  job->process.queue().clear();
  if (const auto firing = std::exchange(job->process.firing(), std::nullopt)) rules_.release(*firing);
  const std::string why = "stopped by " + client.user;
  rules_.switch_off_all(name, "its job was " + why);
  job->process.end({ErrorKind::script, "the job was " + why});
  keep_state(*job);
  run_.publish("job", {{"job", name}, {"text", why}});
  return Json::object();
}

Result<Json> JobScripts::register_rule(const Client& client, const Json& request) {
  const auto job = std::find_if(jobs_.begin(), jobs_.end(),
                                [&](const Job& one) { return one.process.client().id == client.id; });
  if (job == jobs_.end()) return fail(ErrorKind::usage, "only a job's script registers rules one by one");
  Rule rule;
  rule.spec = request.at("spec");
  rule.user = run_.own.user;
  rule.role = Role::admin;
  rule.job = job->name();
  const std::int64_t step = run_.ports.step();
  Rule& added = run_.table.add(std::move(rule), step, wall_clock_s());
  if (job->resumed && added.kind() == "at" && added.next_step <= step) added.state = Rule::State::done;
  run_.dirty = true;
  rules_.tell_sync();
  if (run_.placed) rules_.fire(run_.table.at_step(step, run_.step_ms));
  // The ranks have begun by the time that a script registers anything.
  if (job->begins && added.kind() == "on" && added.spec.value("event", "") == "start") {
    Firing firing;
    firing.rule = added.number;
    firing.event = {{"step", step}, {"resumed", step > 0}};
    rules_.fire({std::move(firing)});
  }
  return Json{{"rule", added.number}};
}

Json JobScripts::list() const {
  Json list = Json::array();
  for (const Job& job : jobs_)
    list.push_back({{"job", job.name()},
                    {"path", job.script.value("path", "")},
                    {"state", job.state},
                    {"resumed", job.resumed},
                    {"error", job.error}});
  return list;
}

}  // namespace footplate::host
