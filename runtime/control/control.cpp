#include "runtime/control/control.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "protocol/iso_time.h"
#include "runtime/comm/watchdog.h"
#include "runtime/control/collective_watch.h"
#include "runtime/control/console_link.h"
#include "runtime/control/coordinator.h"
#include "runtime/control/gate.h"
#include "runtime/control/meetings.h"
#include "runtime/control/messages.h"
#include "runtime/control/participant.h"
#include "runtime/control/run_status.h"
#include "runtime/control/stack_inquiries.h"

namespace footplate {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// While events stream, the control thread looks for them this often instead of being woken by each.
constexpr milliseconds kStreaming{20};
/// While an outcome is awaited from ranks whose messages don't ring.
constexpr milliseconds kImpatient{1};
/// Own heartbeats that a console nobody looks at isn't told of.
constexpr int kBeatsUntold = 4;
/// Between statuses for a console that somebody looks at.
constexpr milliseconds kFollowed{400};
/// Messages handled before the console and the clock are looked at again.
constexpr int kMessagesATurn = 1000;
/// Final reports that a new console's hello carries, in bytes; a line has at most kMaxFrameBytes.
constexpr std::size_t kHelloReportBytes = 512 * 1024;
/// And of what the open orders in it ask for.
constexpr std::size_t kHelloOrderBytes = 128 * 1024;

using WallTime = std::chrono::system_clock::time_point;

Deadlines deadlines_of(const Settings& settings) {
  const auto read = [&](const char* name) {
    return std::chrono::duration_cast<Deadlines::Duration>(
        std::chrono::duration<double>(settings.number(name)));
  };
  return {read("comm.timeout_s"), read("comm.eval_timeout_s"), read("comm.small_timeout_s"),
          read("comm.medium_timeout_s"), read("comm.large_timeout_s")};
}

}  // namespace

/// Everything of a rank's control, used by its thread alone but for what is marked.
class Control::Impl {
 public:
  explicit Impl(ControlOptions options)
      : options_(std::move(options)),
        gate_(
            options_.schema, options_.settings, *options_.progress, [this] { options_.channel->wake(); },
            options_.store) {}

  ~Impl() {
    watchdog_.reset();
    quit_ = true;
    join();
  }

  void start() {
    participant_.emplace(Participant::Parts{options_.schema, gate_, *steerable_, *options_.channel,
                                            *options_.progress, options_.ledger, options_.run.host,
                                            options_.times});
    if (options_.channel->rank() == 0) start_rank_zero();
    for (Committed& order : options_.ahead) {
      if (coordinator_) coordinator_->take_over(order);
      gate_.commit(std::move(order));
    }
    options_.ahead.clear();
    if (options_.ledger != nullptr && options_.channel->world_size() > 1)
      watchdog_.emplace(*options_.ledger, deadlines_of(options_.settings),
                        [this](const Watchdog::Finding& finding) { found(finding); });
    thread_ = std::thread([this] { loop(); });
    pthread_setname_np(thread_.native_handle(), "control");  // for top, and scripts/bench idle
  }

  void finish(const Json& result) {  // the training thread
    if (!thread_.joinable()) return;
    result_ = result;
    watchdog_.reset();
    quit_ = true;
    join();
  }

  void settle(milliseconds at_most) {  // the training thread
    if (!thread_.joinable()) return;
    std::unique_lock lock(settle_mutex_);
    settle_wanted_ = true;
    options_.channel->wake();
    settled_.wait_for(lock, at_most, [this] { return !settle_wanted_; });
  }

  void request_stop(const char* reason, bool resumable) noexcept {  // any thread, signal handlers
    const char* none = nullptr;
    if (stop_reason_.load() != nullptr) return;
    stop_resumable_.store(resumable);
    if (stop_reason_.compare_exchange_strong(none, reason)) options_.channel->wake();
  }

  void take(const Json& line) {  // any thread
    {
      std::lock_guard lock(taken_mutex_);
      taken_.push_back(line);
    }
    options_.channel->wake();
  }

  Json status() const {  // any thread
    std::lock_guard lock(status_mutex_);
    return status_;
  }

  Gate& gate() { return gate_; }
  void set_steerable(Steerable& steerable) {
    steerable_ = &steerable;
    gate_.set_steerable(steerable);
  }

 private:
  void join() {
    if (!thread_.joinable()) return;
    options_.channel->wake();
    thread_.join();
  }

  void start_rank_zero() {
    const auto now = Clock::now();
    follow_settings(options_.settings.to_json());
    run_status_.emplace(options_.channel->world_size(), options_.times, now);
    coordinator_.emplace(
        Coordinator::Parts{options_.schema, *run_status_, options_.channel->world_size(),
                           [this](int to, const Json& message) { options_.channel->send(to, message); },
                           [this](const std::string& topic, Json data) {
                             report(topic, std::move(data), std::chrono::system_clock::now());
                             if (topic == "rank") renew_status();  // now, not with the next heartbeat
                           },
                           options_.times, options_.first_order_id});
    const auto send_all = [this](const Json& message) {
      for (int rank = 0; rank < options_.channel->world_size(); ++rank) options_.channel->send(rank, message);
    };
    meetings_.emplace(Meetings::Parts{*run_status_, options_.channel->world_size(), send_all});
    collectives_.emplace(
        CollectiveWatch::Parts{*run_status_, options_.ledger, options_.channel->world_size(), send_all,
                               [this](const std::string& topic, Json data) {
                                 report(topic, std::move(data), std::chrono::system_clock::now());
                               },
                               options_.times});
    stacks_.emplace(
        StackInquiries::Parts{*run_status_, options_.channel->world_size(),
                              [this](int to, const Json& message) { options_.channel->send(to, message); },
                              [this](const std::string& topic, Json data) {
                                report(topic, std::move(data), std::chrono::system_clock::now());
                              },
                              options_.times});
    renew_status();
    if (options_.console_program.empty()) return;
    link_.emplace(ConsoleLink::Parts{
        options_.console_program, options_.run.directory, [this] { return hello(); },
        [this](const Json& line) { on_console(line); },
        [this](pid_t pid) {
          if (options_.observer) options_.observer("console", {{"pid", pid}});
        },
        [this](const std::string& text) {
          report("warn", {{"kind", "console"}, {"text", text}}, std::chrono::system_clock::now());
        }});
  }

  // --- the loop ---

  void loop() {
    while (!quit_) {
      try {
        turn(Clock::now());
        options_.channel->wait(sleep(), link_ ? link_->fd() : -1);
      } catch (const std::exception& error) {
        // A malformed message must not end the thread that everybody relies on.
        complain(error);
      }
    }
    farewell();
  }

  /// Messages before the clock: after this process was stopped for a while, what the others sent
  /// meanwhile has to count before anybody is called silent or late.
  void turn(Clock::time_point now) {
    handle_messages(now);
    if (link_) link_->pump(now);
    handle_taken();
    handle_gate();
    handle_settle();
    handle_findings();
    handle_stop_request();
    const bool beat = participant_->tick(now);
    if (!coordinator_) return;
    tick_rank_zero(now);
    // Rank 0's own heartbeat: now, rather than after another round. In a turn that isn't about one, what has
    // rung gets a second look (MPI may have been busy).
    handle_messages(now, beat ? 1 : kMessagesATurn);
  }

  void handle_messages(Clock::time_point now, int most = kMessagesATurn) {
    for (int i = 0; i < most; ++i) {
      const auto message = options_.channel->poll();
      if (!message) return;
      if (coordinator_) {
        coordinator_->handle(message->source, message->body, now);
        meetings_->handle(message->source, message->body, now);
        collectives_->handle(message->source, message->body, now);
        stacks_->handle(message->source, message->body, now);
      }
      if (message->source == 0) participant_->handle(message->body);
      if (coordinator_ && message->source == 0 && message->body["t"] == message::kBeat)
        on_own_beat(message->body);
    }
  }

  /// Where nobody looks, a status now and then is enough: making and reading one costs more than all else
  /// that happens while the run is left alone.
  void on_own_beat(const Json& beat) {
    const bool same_state = status_.value("state", "") == beat.value("state", "");
    if (std::exchange(asked_, false) || followed_ || !same_state || ++beats_untold_ >= kBeatsUntold)
      renew_status();
  }

  void handle_taken() {
    std::vector<Json> lines;
    {
      std::lock_guard lock(taken_mutex_);
      lines.swap(taken_);
    }
    for (const Json& line : lines) on_console(line);
  }

  void found(const Watchdog::Finding& finding) {  // the watchdog's thread
    {
      std::lock_guard lock(taken_mutex_);
      findings_.push_back(finding);
    }
    options_.channel->wake();
  }

  void handle_findings() {
    std::vector<Watchdog::Finding> findings;
    {
      std::lock_guard lock(taken_mutex_);
      findings.swap(findings_);
    }
    for (const auto& finding : findings) participant_->tell(finding);
  }

  void handle_gate() {
    for (GateEvent& event : gate_.drain()) {
      try {
        handle(event);
      } catch (const std::exception& error) {
        // The others of this turn must not be lost with it: one may be the end that everybody awaits.
        complain(error);
      }
    }
  }

  /// What was published after handle_gate() and before this may still be queued: another look.
  void handle_settle() {
    {
      std::lock_guard lock(settle_mutex_);
      if (!settle_wanted_) return;
    }
    handle_gate();
    std::lock_guard lock(settle_mutex_);
    settle_wanted_ = false;
    settled_.notify_all();
  }

  void handle(GateEvent& event) {
    if (auto* published = std::get_if<Published>(&event)) {
      if (run_status_ && published->topic == "metrics") run_status_->metrics(published->data);
      report(published->topic, std::move(published->data), published->time, published->hold);
      return;
    }
    participant_->handle(event);
    if (const auto* applied = std::get_if<OrderApplied>(&event)) {
      record(*applied);
      if (watchdog_) watchdog_->set(deadlines_of(gate_.settings_copy()));
    }
  }

  void complain(const std::exception& error) {
    report("warn", {{"kind", "control"}, {"text", std::string("control thread: ") + error.what()}},
           std::chrono::system_clock::now());
  }

  /// Every rank, for its own records: what it applied, as it saw it.
  void record(const OrderApplied& applied) {
    if (!options_.observer || applied.error) return;
    Json moved = Json::array();
    for (const auto& one : applied.moved)
      moved.push_back({{"name", one.name}, {"before", to_json(one.before)}, {"after", to_json(one.after)}});
    options_.observer("applied", {{"order", applied.order},
                                  {"step", applied.step},
                                  {"digest", applied.digest},
                                  {"moved", std::move(moved)}});
  }

  void handle_stop_request() {
    const char* reason = stop_reason_.load();
    if (reason == nullptr || stop_told_) return;
    stop_told_ = true;
    participant_->ask_to_stop(reason, stop_resumable_.load());
  }

  void tick_rank_zero(Clock::time_point now) {
    if (time_limit_.count() > 0 && now >= options_.process_start + time_limit_)
      coordinator_->stop("time limit", /*resumable=*/true, now);
    coordinator_->tick(now);
    meetings_->tick(now);
    collectives_->tick(now);
    stacks_->tick(now);
  }

  milliseconds sleep() const {
    const auto now = Clock::now();
    auto next = participant_->next_tick();
    if (coordinator_)
      next = std::min({next, coordinator_->next_tick(), meetings_->next_tick(), collectives_->next_tick()});
    if (stacks_) next = std::min(next, stacks_->next_tick());
    if (link_) next = std::min(next, link_->next_pump());
    auto most = options_.times.heartbeat;
    if (gate_.streaming()) most = std::min(most, kStreaming);
    const bool awaiting = participant_->awaiting_outcome() ||
                          (coordinator_ && (coordinator_->awaiting_outcome() || meetings_->awaiting_ranks() ||
                                            collectives_->awaiting_answers() || stacks_->awaiting_answers()));
    if (awaiting && !options_.channel->rings()) most = std::min(most, kImpatient);
    if (next <= now) return milliseconds(0);
    if (next - now >= most) return most;
    return std::chrono::ceil<milliseconds>(next - now);
  }

  void farewell() {
    handle_gate();
    participant_->say_goodbye();
    if (link_) link_->finish({{"type", "end"}, {"result", result_}}, options_.times.farewell);
  }

  // --- the console and the records ---

  void report(const std::string& topic, Json data, WallTime time, std::uint64_t hold = 0) {
    if (topic == "settings") {
      follow_settings(data);
      if (link_) link_->send({{"type", "settings"}, {"settings", std::move(data)}});
      return;
    }
    if (topic == "comm_report" || topic == "stacks") {
      if (link_) link_->send({{"type", topic}, {"report", std::move(data)}});
      return;
    }
    if (options_.observer) options_.observer(topic, data);
    if (!link_) return;
    if (topic == "order" || topic == "call") {
      data["type"] = topic;
      link_->send(data);
    } else {
      Json line = {{"type", "event"}, {"topic", topic}, {"time", iso_time(time)}, {"data", std::move(data)}};
      if (hold != 0) line["hold"] = hold;
      link_->send_event(line);
    }
  }

  void on_console(const Json& line) {
    const std::string type = line.value("type", "");
    const auto now = Clock::now();
    if (type == "order") coordinator_->submit(line.value("ref", Json()), line.value("order", Json()), now);
    if (type == "withdraw") coordinator_->withdraw(line, now);
    if (type == "ask") {
      asked_ = true;  // answered as the heartbeat comes: now
      participant_->beat(now);
    }
    if (type == "comm_report") collectives_->ask_patterns(now);
    if (type == "stacks") stacks_->ask(line.value("rank", StackInquiries::kAll), now);
    if (type == "follow") follow(line.value("on", false));
    if (type == "publish") publish(line);
    if (type == "sync") gate_.set_sync(line.value("topics", Json::object()));
    if (type == "release") gate_.release(line.value("hold", std::uint64_t{0}));
    if (type == "cancel")
      coordinator_->cancel(line.value("order", std::uint64_t{0}), line.value("call", std::size_t{0}));
  }

  void follow(bool on) {
    followed_ = on;
    gate_.set_followed(on);
    participant_->beat_every(on ? kFollowed : milliseconds::max());
    if (on) renew_status();
  }

  /// What rules and jobs have to say, for everyone who listens, and for the records.
  void publish(const Json& line) {
    const std::string topic = line.value("topic", "");
    if (topic == "client" || topic == "job" || topic == "rule" || topic == "warn")
      report(topic, line.value("data", Json::object()), std::chrono::system_clock::now());
  }

  Json hello() {
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
    now["orders"] =
        coordinator_->open_orders(kHelloOrderBytes);  // as of this moment: the last status is older
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
              {"world_size", options_.channel->world_size()}}},
            {"schema", options_.schema.to_json()},
            {"settings", gate_.settings_copy().to_json()},
            {"status", std::move(now)},
            {"store", gate_.store()},
            {"reports", std::move(reports)}};
  }

  void follow_settings(const Json& changed) {
    if (changed.contains("train.steps")) steps_ = changed["train.steps"]["value"];
    if (changed.contains("run.time_limit"))
      time_limit_ = std::chrono::duration_cast<Clock::duration>(
          std::chrono::duration<double>(changed["run.time_limit"]["value"].get<double>()));
  }

  void renew_status() {
    beats_untold_ = 0;
    Json status = run_status_->to_json(steps_, Clock::now());
    status["run"] = options_.run.name;
    status["started"] = options_.run.started;
    status["orders"] = coordinator_->open_orders();
    if (link_) link_->send_event({{"type", "status"}, {"status", status}});
    std::lock_guard lock(status_mutex_);
    status_ = std::move(status);
  }

  ControlOptions options_;
  Gate gate_;
  Steerable* steerable_ = nullptr;
  std::optional<Participant> participant_;
  // Rank 0.
  std::optional<RunStatus> run_status_;
  std::optional<Coordinator> coordinator_;
  std::optional<Meetings> meetings_;
  std::optional<CollectiveWatch> collectives_;
  std::optional<StackInquiries> stacks_;
  std::optional<ConsoleLink> link_;
  std::int64_t steps_ = 0;
  Clock::duration time_limit_{0};
  bool stop_told_ = false;
  bool followed_ = false;  ///< the console has somebody who looks
  bool asked_ = false;     ///< the console wants a status now
  int beats_untold_ = 0;
  Json result_;  ///< written before quit_ is set, read after

  std::atomic<bool> quit_{false};
  std::atomic<const char*> stop_reason_{nullptr};
  std::atomic<bool> stop_resumable_{false};
  std::mutex settle_mutex_;
  std::condition_variable settled_;
  bool settle_wanted_ = false;  ///< guarded by settle_mutex_
  std::mutex taken_mutex_;
  std::vector<Json> taken_;
  std::vector<Watchdog::Finding> findings_;  ///< guarded by taken_mutex_
  mutable std::mutex status_mutex_;
  Json status_;
  std::thread thread_;
  std::optional<Watchdog> watchdog_;
};

Control::Control(ControlOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Control::~Control() = default;
void Control::set_steerable(Steerable& steerable) {
  impl_->set_steerable(steerable);
}
void Control::start() {
  impl_->start();
}
StepGate& Control::gate() {
  return impl_->gate();
}
void Control::request_stop(const char* reason, bool resumable) noexcept {
  impl_->request_stop(reason, resumable);
}
void Control::take(const Json& line) {
  impl_->take(line);
}
void Control::settle(std::chrono::milliseconds at_most) {
  impl_->settle(at_most);
}

void Control::finish(const Json& result) {
  impl_->finish(result);
}
Json Control::status() const {
  return impl_->status();
}
Control::Held Control::held() const {
  return {impl_->gate().time_at_fences(), impl_->gate().stops_at_fences()};
}

}  // namespace footplate
