#include "runtime/control/console_feed.h"

#include <iterator>
#include <utility>

#include "protocol/iso_time.h"
#include "protocol/overloaded.h"
#include "runtime/watch/event_parts.h"

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
  if (options.welcome) return options.welcome->at_start;
  Json values = Json::object();
  for (const auto& spec : options.schema.settings)
    if (spec.applies == Applies::restart) values[spec.name] = to_json(options.settings.value(spec.name));
  return values;
}

void ConsoleFeed::start() {
  const ControlOptions& options = parts_.options;
  if (options.console_program.empty()) return;
  link_.emplace(ConsoleLink::Parts{
      options.console_program, options.run.directory, [this] { return hello(); }, parts_.on_message,
      [this](pid_t pid) {
        if (parts_.options.observer) parts_.options.observer(ConsoleStarted{pid});
      },
      [this](const std::string& text) { parts_.warn(warning_of(WarningKind::console, text)); },
      options.times.console_survives});
}

void ConsoleFeed::pump(Clock::time_point now) {
  if (link_) link_->pump(now);
}

ConsoleFeed::Clock::time_point ConsoleFeed::next_pump() const {
  return link_ ? link_->next_pump() : Clock::time_point::max();
}

void ConsoleFeed::finish(const RunResult& result) {
  if (link_) link_->finish({result}, parts_.options.times.console_reads_end);
}

void ConsoleFeed::tell(Report report, WallTime time, std::uint64_t hold) {
  if (!link_) return;
  if (const auto* update = std::get_if<SettingsUpdate>(&report)) keep_computed(*update);
  std::visit(Overloaded{[&](EventData&& event) { tell_event(std::move(event), time, hold); },
                        [&](auto&& other) { link_->send(std::move(other)); }},
             std::move(report));
}

void ConsoleFeed::tell_event(EventData data, WallTime time, std::uint64_t hold) {
  if (auto* order = std::get_if<OrderReport>(&data)) return link_->send(std::move(*order));
  if (auto* call = std::get_if<CallReport>(&data)) return link_->send(std::move(*call));
  if (const auto* line = std::get_if<LoggedMetrics>(&data))
    keep_computed(computed_settings(parts_.options.schema, *line));
  const bool of_rank = topic_of(data) == Topic::rank;
  Event event{.data = std::move(data), .time = iso_time(time), .hold = hold};
  if (of_rank && !link_->is_up()) keep_for_next_console(event);
  link_->send_event(std::move(event));
}

void ConsoleFeed::keep_computed(const SettingsUpdate& update) {
  for (const auto& [name, setting] : update.settings)
    if (const SettingSpec* spec = parts_.options.schema.setting(name);
        spec != nullptr && !spec->metric.empty())
      computed_[name] = setting;
}

Settings ConsoleFeed::settings_now() const {
  Settings now = parts_.gate.settings();
  for (const auto& [name, setting] : computed_)
    if (auto value = parts_.options.schema.check(name, setting.value))
      now.set(name, *std::move(value), setting.source);
  return now;
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

void ConsoleFeed::on_own_beat(const message::Beat& beat) {
  const bool same_state = state_ == beat.state;
  if (std::exchange(asked_, false) || followed_ || !same_state || ++beats_untold_ >= kBeatsUntold)
    renew_status();
}

void ConsoleFeed::renew_status() {
  beats_untold_ = 0;
  RunStatus status = parts_.status.run_status(steps_, Clock::now());
  const RunInfo& run = parts_.options.run;
  status.run = run.name;
  status.started = run.started;
  status.branch = run.branch;
  status.orders = parts_.coordinator.open_orders();
  state_ = status.state;
  if (link_) link_->send_event(StatusUpdate{status});
  parts_.board.write(std::move(status));
}

std::vector<OrderReport> ConsoleFeed::recent_reports() const {
  const auto& final_reports = parts_.coordinator.final_reports();
  std::size_t bytes = 0;
  auto first = final_reports.end();
  while (first != final_reports.begin() && (bytes += std::prev(first)->bytes) <= kHelloReportBytes) --first;
  std::vector<OrderReport> reports;
  for (; first != final_reports.end(); ++first) reports.push_back(first->report);
  return reports;
}

RunIdentity ConsoleFeed::identity() const {
  const RunInfo& run = parts_.options.run;
  return {.name = run.name,
          .id = run.id,
          .directory = run.directory.string(),
          .socket = run.socket,
          .host = run.host,
          .user = run.user,
          .started = run.started,
          .branch = run.branch,
          .left = run.left,
          .began = run.began,
          .world_size = parts_.options.channel->world_size()};
}

RankZeroHello ConsoleFeed::hello() {
  follow(false);             // until the new console says otherwise
  parts_.gate.set_sync({});  // the last console's rules: this one says what it has
  RankZeroHello hello;
  hello.protocol = kProtocolVersion;
  hello.run = identity();
  hello.schema = parts_.options.schema.to_json();
  hello.settings = settings_now().to_json();
  hello.at_start = kept_at_start(parts_.options);
  hello.status = parts_.board.read();
  hello.status.orders = parts_.coordinator.open_orders(kHelloOrderBytes);  // the last status is older
  hello.reports = recent_reports();
  hello.store = parts_.gate.store();
  hello.events = std::exchange(untold_, {});
  return hello;
}

/// The loss that made this rank number 0, above all: it is told before the new console is there.
void ConsoleFeed::keep_for_next_console(const Event& event) {
  if (untold_.size() < kMostUntold) untold_.push_back(event);
}

}  // namespace footplate
