#include "console/host/automation/job_scripts.h"

#include <algorithm>
#include <utility>

#include "run_files/text_file.h"

namespace footplate::host {
namespace {

constexpr std::uint64_t kFirstJob = ScriptRun::kFirstClient + 2;
constexpr int kMostRestarts = 5;  ///< of a job whose process is killed

}  // namespace

void JobScripts::load(std::map<std::string, KeptJob> kept) {
  kept_ = std::move(kept);
  const JobPlan plan = read_job_plan(run_.directory);
  run_.unattended = plan.unattended;
  given_ = plan.given;
  for (const PlannedJob& script : plan.jobs) add(script);
}

void JobScripts::add(const PlannedJob& script) {
  ScriptProcess::Events events;
  const std::size_t place = jobs_.size();
  const auto its = [this, place]() -> Job& {
    return *std::next(jobs_.begin(), static_cast<std::ptrdiff_t>(place));
  };
  events.role = [] { return Role::admin; };  // a job is the owner's
  events.ended = [this, its](const ChunkEnd& end) { script_ended(its(), end); };
  events.handled = [this, its](Firing firing, const ChunkEnd& end) {
    rules_.handled(its().process, std::move(firing), end);
  };
  Job& job = jobs_.emplace_back(run_, kFirstJob + place, script.name, std::move(events));
  job.script = script;
  const auto before = kept_.find(job.name());
  job.resumed = before != kept_.end();
  job.begins = !job.resumed || before->second.started != run_.started;
  if (!job.resumed) return;
  const KeptJob& kept = before->second;
  if (kept.state == JobState::stopped && kept.given.value_or(given_) == given_) {
    job.state = JobState::stopped;
    job.script_sent = true;
  } else if (kept.started == run_.started && kept.state == JobState::done) {
    // It had run to its end, without rules, before this console took over: it isn't run again for that.
    job.state = JobState::done;
    job.script_sent = true;
  }
}

/// Its script first, then the functions of its rules, within the script's waits or after it.
void JobScripts::run(Job& job) {
  ScriptProcess& process = job.process;
  if (job.over() || !run_.placed || (job.script_sent && process.queue().empty())) return;
  if (!job.script_sent && run_.state == RunState::ending) return;  // it could order nothing any more
  if (!process.runs() && !process.start({SessionKind::job, job.resumed, job.path(), job.script.arguments}))
    return;
  if (!job.script_sent) return start_script(job);
  if (!process.lua().handling()) rules_.send_next(process);
}

void JobScripts::on_time() {
  for (Job& job : jobs_) {
    job.process.on_time();
    if (job.state == JobState::rules && !job.process.has_work() && !has_rules(job)) {
      job.state = JobState::done;
      keep_state(job);
    }
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
  return std::ranges::any_of(jobs_, [](const Job& job) { return job.state == JobState::running; });
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
  job.state = JobState::running;
  EvalChunk chunk;
  chunk.id = ScriptProcess::kScriptId;
  chunk.code = text_of_file(run_.directory / "jobs" / job.script.file).value_or("");
  chunk.name = job.path();
  keep_state(job);
  job.process.lua().eval(chunk, run_.now, std::nullopt);
}

/// From the top, as after a restart of the run: its rules come with it. False: it was lost too often.
bool JobScripts::restart_script(Job& job, const std::string& why) {
  if (++job.restarts > kMostRestarts || run_.state == RunState::ended || run_.stopped) return false;
  std::erase_if(run_.table.all(), [&](const auto& item) { return item.second.job == job.name(); });
  job.process.queue().clear();
  job.script_sent = false;
  job.state = JobState::running;
  job.resumed = true;
  run_.warn_of(job.name(), "job " + job.name() + " is started again: " + why);
  rules_.tell_sync();
  return true;
}

/// A job whose script has ended and whose process was killed: its rules' functions were in there.
void JobScripts::look_after(Job& job) {
  if (job.process.runs() || !job.script_sent || job.state != JobState::rules) return;
  if (!restart_script(job, "its process was killed")) give_up(job, "its process was killed");
}

/// Its rules go with it; what nobody watches is stopped.
void JobScripts::give_up(Job& job, const std::string& why) {
  job.state = JobState::failed;
  keep_state(job);
  if (run_.stopped || run_.ends()) return;
  job.error = why;
  rules_.switch_off_all(job.name(), "its job failed");
  const std::string text = "job " + job.name() + " failed: " + job.error;
  job.process.output().note(text);
  run_.warn_of(job.name(), text);
  if (run_.unattended) run_.act("run.stop", "error", text);
}

void JobScripts::script_ended(Job& job, const ChunkEnd& end) {
  if (job.state == JobState::stopped) return;
  if (!end && end.error().lost && restart_script(job, end.error().error.message)) return;
  if (!end) return give_up(job, end.error().error.message);
  job.state = has_rules(job) ? JobState::rules : JobState::done;
  keep_state(job);
}

bool JobScripts::has_rules(const Job& job) const {
  return std::ranges::any_of(
      run_.table.all(), [&](const auto& item) { return item.second.job == job.name() && item.second.on(); });
}

void JobScripts::keep_state(const Job& job) {
  kept_[job.name()] = {run_.started, given_, job.state};
  run_.dirty = true;
}

Result<void> JobScripts::stop(const Client& client, const std::string& name) {
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
  if (job->state != JobState::running && job->state != JobState::rules)
    return fail(ErrorKind::usage,
                "job " + name + " has ended already: " + std::string(to_string(job->state)));
  job->state = JobState::stopped;
  job->script_sent = true;
  job->process.queue().clear();
  if (const auto firing = std::exchange(job->process.firing(), std::nullopt)) rules_.release(*firing);
  const std::string why = "stopped by " + client.user;
  rules_.switch_off_all(name, "its job was " + why);
  job->process.end({ErrorKind::script, "the job was " + why});
  keep_state(*job);
  run_.publish(JobLine{name, why});
  return {};
}

Result<std::int64_t> JobScripts::register_rule(const Client& client, RuleSpec spec) {
  const auto job = std::find_if(jobs_.begin(), jobs_.end(),
                                [&](const Job& one) { return one.process.client().id == client.id; });
  if (job == jobs_.end()) return fail(ErrorKind::usage, "only a job's script registers rules one by one");
  if (run_.table.has_no_room_for(1))
    return fail(ErrorKind::refused, "the run has " + std::to_string(RuleTable::kMostRules) +
                                        " rules, the most there may be; rules[N]:off() ends one");
  Rule rule;
  rule.spec = std::move(spec);
  rule.user = run_.own.user;
  rule.role = Role::admin;
  rule.job = job->name();
  const std::int64_t step = run_.ports.step();
  Rule& added = run_.table.add(std::move(rule), step, wall_clock_s());
  if (job->resumed && added.spec.kind == RuleKind::at && added.next_step <= step)
    added.state = RuleState::done;
  run_.dirty = true;
  rules_.tell_sync();
  if (run_.placed) rules_.fire(run_.table.at_step(step, run_.step_ms));
  // The ranks have begun by the time that a script registers anything.
  if (job->begins && added.spec.kind == RuleKind::on && added.spec.event == RuleEvent::start) {
    Firing firing;
    firing.rule = added.number;
    firing.event = {{"step", step}, {"resumed", step > 0}};
    firing.step = step;
    rules_.fire({std::move(firing)});
  }
  return added.number;
}

std::vector<JobStatus> JobScripts::list() const {
  std::vector<JobStatus> list;
  for (const Job& job : jobs_)
    list.push_back({job.name(), job.script.path, job.state, job.resumed, job.error});
  return list;
}

}  // namespace footplate::host
