#include "runtime/control/control.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "protocol/iso_time.h"
#include "runtime/comm/watchdog.h"
#include "runtime/control/advice.h"
#include "runtime/control/collective_watch.h"
#include "runtime/control/console_link.h"
#include "runtime/control/coordinator.h"
#include "runtime/control/fuse.h"
#include "runtime/control/gate.h"
#include "runtime/control/meetings.h"
#include "runtime/control/messages.h"
#include "runtime/control/participant.h"
#include "runtime/control/recovery.h"
#include "runtime/control/run_status.h"

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
            options_.store) {
    gate_.set_recoverable(options_.world != nullptr);
  }

  ~Impl() {
    watchdog_.reset();
    quit_ = true;
    join();
  }

  /// Every rank: settings that control itself acts by.
  void follow_limits() {
    const Settings settings = gate_.settings_copy();
    on_loss_ = settings.string("comm.on_loss");
    hard_limit_ = std::chrono::duration<double>(settings.number("comm.hard_limit_s"));
  }

  void start() {
    follow_limits();
    participant_.emplace(Participant::Parts{options_.schema, gate_, *steerable_, *options_.channel,
                                            *options_.progress, options_.ledger, options_.run.host,
                                            options_.times});
    if (options_.channel->rank() == 0) start_rank_zero(options_.first_order_id);
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

  void training_ended() { training_ended_ = true; }  // the training thread

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

  /// As rank 0 starts, or once its work has come to this rank.
  void start_rank_zero(std::uint64_t first_order_id) {
    const auto now = Clock::now();
    follow_settings(gate_.settings_copy().to_json());
    run_status_.emplace(options_.channel->world_size(), options_.times, now);
    coordinator_.emplace(
        Coordinator::Parts{options_.schema, *run_status_, options_.channel->world_size(),
                           [this](int to, const Json& message) { options_.channel->send(to, message); },
                           [this](const std::string& topic, Json data) {
                             report(topic, std::move(data), std::chrono::system_clock::now());
                             if (topic == "rank") renew_status();  // now, not with the next heartbeat
                           },
                           options_.times, first_order_id});
    watch_collectives();
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

  /// What counts ranks or numbers of collectives begins anew with every world.
  void watch_collectives() {
    const int world_size = options_.channel->world_size();
    const auto send_all = [this](const Json& message) { this->send_all(message); };
    meetings_.emplace(Meetings::Parts{*run_status_, world_size, send_all});
    advice_.emplace(Advice::Parts{
        options_.schema, *run_status_, options_.ledger, world_size, options_.first_order_id,
        [this](Order order) { return coordinator_->submit_own(std::move(order), Clock::now()); },
        [this](Json data) { report("warn", std::move(data), std::chrono::system_clock::now()); }});
    advice_->follow(gate_.settings_copy().to_json());
    collectives_.emplace(CollectiveWatch::Parts{*run_status_, options_.ledger, world_size, send_all,
                                                [this](const std::string& topic, Json data) {
                                                  report(topic, std::move(data),
                                                         std::chrono::system_clock::now());
                                                },
                                                options_.times, &*advice_});
  }

  void send_all(const Json& message) {
    for (int rank = 0; rank < options_.channel->world_size(); ++rank) options_.channel->send(rank, message);
  }

  // --- recovery: a rank was lost ---

  /// All who are left come here, each as it notices. Nothing in it waits for a training thread.
  void recover(Clock::time_point now) {
    // What has been said before counts (a commit that this rank has sent itself, an order applied here), and
    // is over with this world: no message to itself may reach the next one.
    if (on_loss_ == "stop") return give_up("a rank was lost, and comm.on_loss is \"stop\"");
    gate_.hold_for_recovery();
    handle_messages(now);
    handle_gate();
    handle_messages(now);
    if (coordinator_) coordinator_->suspend();
    if (!recovering_) recovering_since_ = now;
    recovering_ = true;
    told_standing_ = false;
    const Membership before = options_.world->members();
    if (auto rebuilt = rebuild_in_time(); !rebuilt)
      return give_up("recovery failed: " + rebuilt.error().message);
    const Membership& after = options_.world->members();
    note_lost(before, after);
    const bool leads = after.rank == 0 && !coordinator_;
    const std::uint64_t first_order_id = options_.on_world ? options_.on_world(after, leads) : 0;
    if (after.rank != 0) return;
    if (leads) {
      start_rank_zero(std::max(options_.first_order_id, first_order_id));
      coordinator_->suspend();
      first_unrecorded_ = first_order_id;
    } else {
      run_status_->world_changed(numbers_before(before, after), now);
      watch_collectives();
    }
    recovery_.emplace(after.world_size(), after.generation);
  }

  /// A rank that is stopped, or the MPI library, may hold it up for ever: this thread with it.
  Result<void> rebuild_in_time() {
    const Fuse fuse(options_.times.rebuild, [this] {
      if (options_.give_up)
        options_.give_up("recovery failed: the ranks that are left didn't find together in time");
    });
    return options_.world->rebuild();
  }

  void give_up(const std::string& why) {
    options_.channel->wake_peers();  // they notice the loss now, and not with their next heartbeat
    if (options_.give_up) options_.give_up(why);
    gate_.give_up(why);
    quit_ = true;
  }

  // --- rank 0: a rank that is stuck ---

  void enforce_hard_limit(Clock::time_point now) {
    if (hard_limit_.count() <= 0) return;
    const auto stuck = run_status_->stuck(hard_limit_, now);
    if (!stuck || !killed_.insert(stuck->pid).second) return;
    kill(*stuck, fmt::format("past comm.hard_limit_s ({:.3g} s)", hard_limit_.count()));
  }

  void kill(const RunStatus::Stuck& stuck, const std::string& why) {
    const std::string text = fmt::format("killed {}: {}", why, stuck.text);
    report("rank", {{"rank", stuck.rank}, {"state", "killed"}, {"text", text}},
           std::chrono::system_clock::now());
    send_all({{"t", message::kDie}, {"rank", stuck.rank}, {"pid", stuck.pid}, {"host", stuck.host}});
  }

  /// By rank of now.
  static std::vector<int> numbers_before(const Membership& before, const Membership& after) {
    std::vector<int> numbers;
    for (const int origin : after.origins) {
      const auto found = std::find(before.origins.begin(), before.origins.end(), origin);
      numbers.push_back(found == before.origins.end() ? -1
                                                      : static_cast<int>(found - before.origins.begin()));
    }
    return numbers;
  }

  void note_lost(const Membership& before, const Membership& after) {
    for (std::size_t rank = 0; rank < before.origins.size(); ++rank)
      if (std::find(after.origins.begin(), after.origins.end(), before.origins[rank]) == after.origins.end())
        lost_ranks_.push_back(static_cast<int>(rank));
  }

  void tick_recovery() {
    if (told_standing_) return;
    const auto standing = gate_.standing();
    if (!standing) return;
    told_standing_ = true;
    handle_gate();  // what was applied on the way here is told first
    participant_->stand(*standing, options_.world->members().generation);
  }

  /// Rank 0.
  void on_standing(int source, const Json& message, Clock::time_point now) {
    if (!recovery_) return;
    recovery_->add(source, message);
    const auto verdict = recovery_->verdict();
    if (!verdict) return;
    recovery_.reset();
    for (int rank = 1; rank < options_.channel->world_size(); ++rank) options_.channel->send(rank, *verdict);
    on_rejoin(*verdict);
    if (!recovering_) go_on(*verdict, now);
  }

  void go_on(const Json& verdict, Clock::time_point now) {
    if (first_unrecorded_) inherit_orders(*std::exchange(first_unrecorded_, std::nullopt));
    coordinator_->continue_from(verdict.at("ticket"), verdict.at("order"));
    coordinator_->go_on(options_.channel->world_size(), verdict.at("commits"), now);
    const auto took = std::chrono::duration_cast<milliseconds>(now - recovering_since_).count();
    const int left = options_.channel->world_size();
    const std::int64_t step = verdict.at("step");
    const std::string text =
        fmt::format("rank{} {} of {} lost at step {}; training goes on with {} rank{} ({} ms)",
                    lost_ranks_.size() == 1 ? "" : "s", fmt::join(lost_ranks_, ", "),
                    left + static_cast<int>(lost_ranks_.size()), step, left, left == 1 ? "" : "s", took);
    report("rank",
           {{"state", "lost"},
            {"ranks", lost_ranks_},
            {"world_size", left},
            {"step", step},
            {"level", !verdict.at("behind").empty()},
            {"ms", took},
            {"text", text}},
           std::chrono::system_clock::now());
    lost_ranks_.clear();
    renew_status();
  }

  /// This rank leads since rank 0 was lost: what is agreed on and not confirmed by all, or not recorded.
  void inherit_orders(std::uint64_t first_unrecorded) {
    for (const Committed& committed : gate_.forecast().pending) coordinator_->inherit(committed);
    for (const Committed& committed : participant_->committed())
      if (committed.order.id >= first_unrecorded && !gate_.is_pending(committed.order.id))
        coordinator_->inherit(committed);
  }

  void on_rejoin(const Json& verdict) {
    if (!recovering_ || verdict.at("generation") != options_.world->members().generation) return;
    if (verdict.contains("impossible"))
      return give_up("recovery failed: " + verdict["impossible"].get<std::string>());
    recovering_ = false;
    stop_told_ = false;  // rank 0 may be another
    participant_->rejoin(verdict, options_.world->members().local_ranks);
    if (options_.channel->rank() != 0) lost_ranks_.clear();
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
    if (options_.world != nullptr && options_.world->broken() && !training_ended_) recover(now);
    if (quit_) return;
    handle_messages(now);
    if (recovering_) tick_recovery();
    if (link_) link_->pump(now);
    handle_taken();
    handle_gate();
    handle_settle();
    handle_findings();
    if (!recovering_) handle_stop_request();
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
      const std::string type = message->body.value("t", "");
      if (type == message::kStanding) on_standing(message->source, message->body, now);
      if (type == message::kRejoin) on_rejoin(message->body);
      if (coordinator_) {
        coordinator_->handle(message->source, message->body, now);
        meetings_->handle(message->source, message->body, now);
        collectives_->handle(message->source, message->body, now);
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
      follow_limits();
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
    if (recovering_) {
      coordinator_->tick(now);
      return;
    }
    if (time_limit_.count() > 0 && now >= options_.process_start + time_limit_)
      coordinator_->stop("time limit", /*resumable=*/true, now);
    coordinator_->tick(now);
    enforce_hard_limit(now);
    meetings_->tick(now);
    collectives_->tick(now);
    advice_->tick(now);
  }

  milliseconds sleep() const {
    const auto now = Clock::now();
    auto next = participant_->next_tick();
    if (coordinator_)
      next = std::min({next, coordinator_->next_tick(), meetings_->next_tick(), collectives_->next_tick()});
    if (link_) next = std::min(next, link_->next_pump());
    auto most = options_.times.heartbeat;
    if (gate_.streaming()) most = std::min(most, kStreaming);
    const bool awaiting = participant_->awaiting_outcome() ||
                          (coordinator_ && (coordinator_->awaiting_outcome() || meetings_->awaiting_ranks() ||
                                            collectives_->awaiting_answers()));
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
    if (topic == "comm_report") {
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
    if (advice_) advice_->follow(changed);
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
  std::optional<Advice> advice_;
  std::optional<CollectiveWatch> collectives_;
  std::optional<ConsoleLink> link_;
  std::chrono::duration<double> hard_limit_{0};
  std::set<int> killed_;  ///< process ids
  // After a loss.
  std::string on_loss_ = "rebuild";
  bool recovering_ = false;     ///< until all have agreed how to go on
  bool told_standing_ = false;  ///< to the rank 0 of this generation
  Clock::time_point recovering_since_{};
  std::vector<int> lost_ranks_;       ///< by their numbers before; since the last verdict
  std::optional<Recovery> recovery_;  ///< rank 0
  std::optional<std::uint64_t>
      first_unrecorded_;  ///< a new rank 0: orders from here on aren't in the journal
  std::int64_t steps_ = 0;
  Clock::duration time_limit_{0};
  bool stop_told_ = false;
  bool followed_ = false;  ///< the console has somebody who looks
  bool asked_ = false;     ///< the console wants a status now
  int beats_untold_ = 0;
  Json result_;  ///< written before quit_ is set, read after

  std::atomic<bool> quit_{false};
  std::atomic<bool> training_ended_{false};
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
void Control::training_ended() {
  impl_->training_ended();
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
