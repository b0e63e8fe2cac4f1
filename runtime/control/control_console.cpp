// What goes to the console and the records, and what comes from there.
#include "protocol/iso_time.h"
#include "protocol/mutex.h"
#include "runtime/control/control_impl.h"
#include "runtime/watch/messages.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;

/// Between statuses for a console that somebody looks at.
constexpr milliseconds kFollowed{400};
/// Final reports that a new console's hello carries, in bytes; a line has at most kMaxFrameBytes.
constexpr std::size_t kHelloReportBytes = 512 * 1024;
/// And of what the open orders in it ask for.
constexpr std::size_t kHelloOrderBytes = 128 * 1024;
/// Events of lost ranks and the like that wait for a console.
constexpr std::size_t kMostUntold = 100;

}  // namespace

void Control::Impl::report(const std::string& topic, Json data, WallTime time, std::uint64_t hold) {
  if (topic == "settings") {
    follow_settings(data);
    if (link_) link_->send({{"type", "settings"}, {"settings", std::move(data)}});
    return;
  }
  if (topic == "comm_report" || topic == "stacks") {
    if (link_) link_->send({{"type", topic}, {"report", std::move(data)}});
    return;
  }
  if (repair_ != 0 && data.value(topic == "call" ? "order" : "id", std::uint64_t{0}) == repair_)
    note_repair(topic, data);
  if (admission_ != 0 && data.value(topic == "call" ? "order" : "id", std::uint64_t{0}) == admission_)
    note_admission(data.value("state", ""));
  if (options_.observer) options_.observer(topic, data);
  if (!link_) return;
  if (topic == "order" || topic == "call") {
    data["type"] = topic;
    link_->send(data);
  } else {
    Json line = {{"type", "event"}, {"topic", topic}, {"time", iso_time(time)}, {"data", std::move(data)}};
    if (hold != 0) line["hold"] = hold;
    if (topic == "rank" && !link_->is_up()) keep_for_next_console(line);
    link_->send_event(line);
  }
}

void Control::Impl::on_console(const Json& line) {
  if (!coordinator_) return;  // another rank leads
  const std::string type = line.value("type", "");
  const auto now = Clock::now();
  if (type == "order") coordinator_->submit(line.value("ref", Json()), line.value("order", Json()), now);
  if (type == "withdraw") coordinator_->withdraw(line, now);
  if (type == "ask") {
    asked_ = true;  // answered as the heartbeat comes: now
    participant_->beat(now);
  }
  if (type == "comm_report") collectives_->ask_patterns(now);
  if (type == "drop") drop(line.value("rank", 0), line.value("user", ""), now);
  if (type == "stacks") stacks_->ask(line.value("rank", StackInquiries::kAll), now);
  if (type == "follow") follow(line.value("on", false));
  if (type == "publish") publish(line);
  if (type == "sync") gate_.set_sync(line.value("topics", Json::object()));
  if (type == "release") gate_.release(line.value("hold", std::uint64_t{0}));
  if (type == "cancel") cancel(line);
}

void Control::Impl::cancel(const Json& line) {
  if (!line.value("evaluation", false))
    coordinator_->cancel(line.value("order", std::uint64_t{0}), line.value("call", std::size_t{0}));
  else if (const auto step = options_.progress->evaluation_under_way())
    coordinator_->cancel_evaluation(*step);
}

void Control::Impl::follow(bool on) {
  followed_ = on;
  gate_.set_followed(on);
  participant_->beat_every(on ? kFollowed : milliseconds::max());
  if (on) renew_status();
}

void Control::Impl::publish(const Json& line) {
  const std::string topic = line.value("topic", "");
  if (topic == "client" || topic == "job" || topic == "rule" || topic == "warn")
    report(topic, line.value("data", Json::object()), std::chrono::system_clock::now());
}

/// What the run's start had of the settings that apply at the next one. A process that has joined was told.
Json Control::Impl::kept_at_start() const {
  if (const auto told = options_.welcome.find("at_start"); told != options_.welcome.end()) return *told;
  Json values = Json::object();
  for (const auto& spec : options_.schema.settings)
    if (spec.applies == Applies::restart) values[spec.name] = to_json(options_.settings.value(spec.name));
  return values;
}

Json Control::Impl::hello() {
  follow(false);                   // until the new console says otherwise
  gate_.set_sync(Json::object());  // the last console's rules: this one says what it has
  Json reports = Json::array();
  std::size_t bytes = 0;
  const auto& final_reports = coordinator_->final_reports();
  for (auto it = final_reports.rbegin(); it != final_reports.rend(); ++it) {
    bytes += it->dump(-1, ' ', false, Json::error_handler_t::replace).size();
    if (bytes > kHelloReportBytes) break;
    reports.insert(reports.begin(), *it);
  }
  Json now = status();
  now["orders"] = coordinator_->open_orders(kHelloOrderBytes);  // as of this moment: the last status is older
  const RunInfo& run = options_.run;
  return {{"type", "hello"},
          {"protocol", kProtocolVersion},
          {"run",
           {{"name", run.name},
            {"id", run.id},
            {"directory", run.directory.string()},
            {"socket", run.socket},
            {"host", run.host},
            {"user", run.user},
            {"started", run.started},
            {"branch", run.branch},
            {"left", run.left},
            {"world_size", options_.channel->world_size()}}},
          {"schema", options_.schema.to_json()},
          {"settings", gate_.settings().to_json()},
          {"at_start", kept_at_start()},
          {"status", std::move(now)},
          {"store", gate_.store()},
          {"reports", std::move(reports)},
          {"events", std::exchange(untold_, Json::array())}};
}

/// The loss that made this rank number 0, above all: it is told before the new console is there.
void Control::Impl::keep_for_next_console(const Json& event) {
  if (untold_.size() < kMostUntold) untold_.push_back(event);
}

void Control::Impl::follow_settings(const Json& changed) {
  if (advice_) advice_->follow(changed);
  if (changed.contains("train.steps")) steps_ = changed["train.steps"]["value"];
  if (changed.contains("run.time_limit"))
    time_limit_ = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(changed["run.time_limit"]["value"].get<double>()));
}

void Control::Impl::renew_status() {
  beats_untold_ = 0;
  Json status = run_status_->to_json(steps_, Clock::now());
  status["run"] = options_.run.name;
  status["started"] = options_.run.started;
  status["branch"] = options_.run.branch;
  status["orders"] = coordinator_->open_orders();
  if (link_) link_->send_event({{"type", "status"}, {"status", status}});
  MutexLock lock(status_mutex_);
  status_ = std::move(status);
}

}  // namespace footplate
