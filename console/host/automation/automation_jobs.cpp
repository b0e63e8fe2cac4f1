#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "console/host/automation/automation.h"

// Job scripts: what `footplate run --script` left in RUN/jobs (docs/protocol.md, "Job scripts").

namespace footplate::host {
namespace {

constexpr std::uint64_t kFirstJob = (std::uint64_t{1} << 32) + 2;
constexpr std::uint64_t kMostPrinted =
    64U * 1024 * 1024;             ///< bytes of log/job-NAME.log by one start of a job
constexpr int kLinesASecond = 50;  ///< of a job, to everyone; its log has them all
constexpr std::size_t kLongestLine = 2000;
constexpr int kMostRestarts = 5;  ///< of a job whose process is killed

void append_to(const std::filesystem::path& path, const std::string& text) {
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  if (::write(fd, text.data(), text.size()) < 0) ::lseek(fd, 0, SEEK_CUR);  // a full disk: the line is lost
  ::close(fd);
}

}  // namespace

void Automation::load_jobs() {
  std::ifstream file(directory_ / "jobs" / "jobs.json");
  const Json plan = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!plan.is_object()) return;
  unattended_ = plan.value("unattended", false);
  given_ = plan.value("given", std::int64_t{0});
  for (const Json& script : plan.value("jobs", Json::array())) {
    Actor& actor = jobs_.emplace_back(kFirstJob + jobs_.size());
    actor.job = script.value("name", "job");
    actor.script = script;
    actor.client.session = "job:" + actor.job;
    actor.client.role = Role::admin;
    actor.client.user = own_.user;
    const Json before = kept_jobs_.value(actor.job, Json());
    actor.resumed = before.is_object();
    actor.begins = !actor.resumed || before.value("started", "") != started_;
    if (before.is_object() && before.value("state", "") == "stopped" &&
        before.value("given", given_) == given_) {
      actor.state = "stopped";
      actor.script_sent = true;
      continue;
    }
    // One that had run to its end, without rules, before this console took over: it isn't run again for that.
    if (actor.resumed && before.value("started", "") == started_ && before.value("state", "") == "done") {
      actor.state = "done";
      actor.script_sent = true;
    }
  }
}

void Automation::start_script(Actor& actor) {
  actor.script_sent = true;
  actor.state = "running";
  std::ifstream file(directory_ / "jobs" / actor.script.value("file", ""), std::ios::binary);
  const std::string code{std::istreambuf_iterator<char>(file), {}};
  keep_state(actor);
  save(/*durable=*/false);
  actor.client.lua->eval({{"type", "eval"},
                          {"id", "script"},
                          {"code", code},
                          {"name", actor.script.value("path", actor.job)},
                          {"timeout_s", 30.0}},
                         now_, std::nullopt);
}

/// From the top, as after a restart of the run: its rules come with it. False: it was lost too often.
bool Automation::restart_script(Actor& actor, const std::string& why) {
  if (++actor.restarts > kMostRestarts || run_state_ == "ended" || stopped_) return false;
  std::erase_if(table_.all(), [&](const auto& item) { return item.second.job == actor.job; });
  actor.queue.clear();
  actor.script_sent = false;
  actor.state = "running";
  actor.resumed = true;
  warn("job " + actor.job + " is started again: " + why, {{"job", actor.job}});
  tell_sync();
  return true;
}

/// A job whose script has ended and whose process was killed: its rules' functions were in there.
void Automation::look_after(Actor& actor) {
  const bool runs = actor.client.lua && actor.client.lua->has_process();
  if (runs || !actor.script_sent || actor.state != "rules") return;
  if (!restart_script(actor, "its process was killed")) actor.state = "failed";
}

void Automation::script_ended(Actor& actor, const Json& message) {
  if (actor.state == "stopped") return;
  const auto own = [&](const auto& item) { return item.second.job == actor.job; };
  const std::string error = error_from_json(message.value("error", Json())).message;
  if (message.value("lost", false) && restart_script(actor, error)) return;
  const bool failed = message.value("type", "") == "error";
  actor.state = failed ? "failed" : "done";
  const bool rules = std::any_of(table_.all().begin(), table_.all().end(),
                                 [&](const auto& item) { return own(item) && item.second.on(); });
  if (!failed && rules) actor.state = "rules";
  keep_state(actor);
  if (!failed || run_state_ == "ending" || run_state_ == "ended" || stopped_ || stopping_) return;
  actor.error = error;
  switch_off_rules(actor, "its job failed");
  const std::string text = "job " + actor.job + " failed: " + actor.error;
  append_to(directory_ / "log" / ("job-" + actor.job + ".log"), text + "\n");
  warn(text, {{"job", actor.job}});
  if (unattended_) act("run.stop", {{"error", text}});
}

void Automation::keep_state(const Actor& actor) {
  kept_jobs_[actor.job] = {{"started", started_}, {"given", given_}, {"state", actor.state}};
  dirty_ = true;
}

void Automation::switch_off_rules(const Actor& job, const std::string& why) {
  for (auto& [number, rule] : table_.all())
    if (rule.job == job.job && rule.on()) switch_off(rule, why);
}

Result<Json> Automation::stop_job(const Client& client, const std::string& name) {
  const auto actor =
      std::find_if(jobs_.begin(), jobs_.end(), [&](const Actor& job) { return job.job == name; });
  if (actor == jobs_.end()) {
    std::vector<std::string> known;
    for (const Actor& job : jobs_) known.push_back(job.job);
    const std::string near = nearest(name, known);
    return fail(ErrorKind::usage,
                "there is no job '" + name + "'" +
                    (near.empty() ? "; jobs() lists them" : "; did you mean " + near + "?"));
  }
  if (actor->state != "running" && actor->state != "rules")
    return fail(ErrorKind::usage, "job " + name + " has ended already: " + actor->state);
  actor->state = "stopped";
  actor->script_sent = true;
  actor->queue.clear();
  if (const auto firing = std::exchange(actor->firing, std::nullopt)) release(firing->hold, firing->rule);
  const std::string why = "stopped by " + client.user;
  switch_off_rules(*actor, "its job was " + why);
  if (actor->client.lua) actor->client.lua->end({ErrorKind::script, "the job was " + why});
  keep_state(*actor);
  publish("job", {{"job", name}, {"text", why}});
  return Json::object();
}

Result<Json> Automation::register_rule(const Client& client, const Json& request) {
  const auto actor =
      std::find_if(jobs_.begin(), jobs_.end(), [&](const Actor& job) { return job.client.id == client.id; });
  if (actor == jobs_.end()) return fail(ErrorKind::usage, "only a job's script registers rules one by one");
  Rule rule;
  rule.spec = request.at("spec");
  rule.user = own_.user;
  rule.role = Role::admin;
  rule.job = actor->job;
  const std::int64_t step = ports_.step();
  Rule& added = table_.add(std::move(rule), step, wall_clock_s());
  if (actor->resumed && added.kind() == "at" && added.next_step <= step) added.state = Rule::State::done;
  dirty_ = true;
  tell_sync();
  if (placed_) fire(table_.at_step(step, step_ms_));
  // The ranks have begun by the time that a script registers anything.
  if (actor->begins && added.kind() == "on" && added.spec.value("event", "") == "start") {
    Firing firing;
    firing.rule = added.number;
    firing.event = {{"step", step}, {"resumed", step > 0}};
    fire({std::move(firing)});
  }
  return Json{{"rule", added.number}};
}

Json Automation::jobs() const {
  Json list = Json::array();
  for (const Actor& actor : jobs_)
    list.push_back({{"job", actor.job},
                    {"path", actor.script.value("path", "")},
                    {"state", actor.state},
                    {"resumed", actor.resumed},
                    {"error", actor.error}});
  return list;
}

/// What a job or a rule prints: into its log, and line by line to everyone who looks, up to a bound.
void Automation::job_output(Actor& actor, const Json& message) {
  const std::string text = message.value("text", "");
  const std::string name = actor.job.empty() ? "rules" : "job-" + actor.job;
  if (actor.printed < kMostPrinted) append_to(directory_ / "log" / (name + ".log"), text);
  actor.printed += text.size();
  if (message.value("stream", "") == "talk")
    return;  // an order's confirmation: everyone hears of it as an order
  if (now_ - actor.second >= std::chrono::seconds(1)) {
    actor.second = now_;
    actor.lines_this_second = 0;
  }
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    if (++actor.lines_this_second <= kLinesASecond) {
      std::string line = text.substr(start, std::min(end - start, kLongestLine));
      if (actor.lines_left_out > 0)
        line += " (" + std::to_string(std::exchange(actor.lines_left_out, 0)) +
                " lines before it are only in log/" + name + ".log)";
      const bool rule = actor.job.empty() && actor.firing;
      publish("job",
              {{"job", rule ? "rule " + std::to_string(actor.firing->rule) : actor.job}, {"text", line}});
    } else {
      ++actor.lines_left_out;
    }
    start = end + 1;
  }
}

/// What an error of a rule does where the rule doesn't say.
std::string Automation::policy(const Rule& rule) const {
  return rule.spec.value("on_error", unattended_ ? "stop" : "warn");
}

}  // namespace footplate::host
