#include "runtime/control/console_feed.h"

#include <utility>

#include "protocol/iso_time.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;

/// Between statuses for a console that somebody looks at.
constexpr milliseconds kFollowed{400};
/// Own heartbeats that a console nobody looks at isn't told of.
constexpr int kBeatsUntold = 4;
/// Final reports that a new console's hello carries, in bytes; a line has at most kMaxFrameBytes.
constexpr std::size_t kHelloReportBytes = 512 * 1024;
/// And of what the open orders in it ask for.
constexpr std::size_t kHelloOrderBytes = 128 * 1024;
/// Events of lost ranks and the like that wait for a console.
constexpr std::size_t kMostUntold = 100;

}  // namespace

Json kept_at_start(const ControlOptions& options) {
  if (const auto told = options.welcome.find("at_start"); told != options.welcome.end()) return *told;
  Json values = Json::object();
  for (const auto& spec : options.schema.settings)
    if (spec.applies == Applies::restart) values[spec.name] = to_json(options.settings.value(spec.name));
  return values;
}

void ConsoleFeed::start() {
  const ControlOptions& options = parts_.options;
  if (options.console_program.empty()) return;
  link_.emplace(ConsoleLink::Parts{options.console_program, options.run.directory, [this] { return hello(); },
                                   parts_.on_line,
                                   [this](pid_t pid) {
                                     if (parts_.options.observer)
                                       parts_.options.observer("console", {{"pid", pid}});
                                   },
                                   [this](const std::string& text) {
                                     parts_.warn({{"kind", "console"}, {"text", text}});
                                   },
                                   options.times.console_survives});
}

void ConsoleFeed::pump(Clock::time_point now) {
  if (link_) link_->pump(now);
}

ConsoleFeed::Clock::time_point ConsoleFeed::next_pump() const {
  return link_ ? link_->next_pump() : Clock::time_point::max();
}

void ConsoleFeed::finish(const Json& result) {
  if (link_) link_->finish({{"type", "end"}, {"result", result}}, parts_.options.times.console_reads_end);
}

void ConsoleFeed::tell(const std::string& topic, Json data, WallTime time, std::uint64_t hold) {
  if (!link_) return;
  if (topic == "settings") {
    link_->send({{"type", topic}, {"settings", std::move(data)}});
  } else if (topic == "comm_report" || topic == "stacks") {
    link_->send({{"type", topic}, {"report", std::move(data)}});
  } else if (topic == "order" || topic == "call") {
    data["type"] = topic;
    link_->send(data);
  } else {
    Json line = {{"type", "event"}, {"topic", topic}, {"time", iso_time(time)}, {"data", std::move(data)}};
    if (hold != 0) line["hold"] = hold;
    if (topic == "rank" && !link_->is_up()) keep_for_next_console(line);
    link_->send_event(line);
  }
}

void ConsoleFeed::follow(bool on) {
  followed_ = on;
  parts_.gate.set_followed(on);
  parts_.participant.beat_every(on ? kFollowed : milliseconds::max());
  if (on) renew_status();
}

void ConsoleFeed::ask(Clock::time_point now) {
  asked_ = true;  // answered as the heartbeat comes: now
  parts_.participant.beat(now);
}

void ConsoleFeed::on_own_beat(const Json& beat) {
  const bool same_state = state_ == beat.value("state", "");
  if (std::exchange(asked_, false) || followed_ || !same_state || ++beats_untold_ >= kBeatsUntold)
    renew_status();
}

void ConsoleFeed::renew_status() {
  beats_untold_ = 0;
  Json status = parts_.status.to_json(steps_, Clock::now());
  const RunInfo& run = parts_.options.run;
  status["run"] = run.name;
  status["started"] = run.started;
  status["branch"] = run.branch;
  status["orders"] = parts_.coordinator.open_orders();
  state_ = status.value("state", "");
  if (link_) link_->send_event({{"type", "status"}, {"status", status}});
  parts_.board.write(std::move(status));
}

Json ConsoleFeed::recent_reports() const {
  Json reports = Json::array();
  std::size_t bytes = 0;
  const auto& final_reports = parts_.coordinator.final_reports();
  for (auto it = final_reports.rbegin(); it != final_reports.rend(); ++it) {
    bytes += it->dump(-1, ' ', false, Json::error_handler_t::replace).size();
    if (bytes > kHelloReportBytes) break;
    reports.insert(reports.begin(), *it);
  }
  return reports;
}

Json ConsoleFeed::hello() {
  follow(false);                         // until the new console says otherwise
  parts_.gate.set_sync(Json::object());  // the last console's rules: this one says what it has
  Json now = parts_.board.read();
  now["orders"] = parts_.coordinator.open_orders(kHelloOrderBytes);  // the last status is older
  const RunInfo& run = parts_.options.run;
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
            {"world_size", parts_.options.channel->world_size()}}},
          {"schema", parts_.options.schema.to_json()},
          {"settings", parts_.gate.settings().to_json()},
          {"at_start", kept_at_start(parts_.options)},
          {"status", std::move(now)},
          {"store", parts_.gate.store()},
          {"reports", recent_reports()},
          {"events", std::exchange(untold_, Json::array())}};
}

/// The loss that made this rank number 0, above all: it is told before the new console is there.
void ConsoleFeed::keep_for_next_console(const Json& event) {
  if (untold_.size() < kMostUntold) untold_.push_back(event);
}

}  // namespace footplate
