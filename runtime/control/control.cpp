#include "runtime/control/control.h"

#include <utility>

#include "protocol/mutex.h"
#include "runtime/control/control_impl.h"
#include "runtime/schema/actions.h"
#include "runtime/watch/messages.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;

/// While events stream, the control thread looks for them this often instead of being woken by each: people
/// see no difference, and most of what an event costs is the waking.
constexpr milliseconds kStreaming{200};
/// While an outcome is awaited from ranks whose messages don't ring.
constexpr milliseconds kImpatient{1};
/// Own heartbeats that a console nobody looks at isn't told of.
constexpr int kBeatsUntold = 4;

Deadlines deadlines_of(const Settings& settings) {
  const auto read = [&](const char* name) {
    return std::chrono::duration_cast<Deadlines::Duration>(
        std::chrono::duration<double>(settings.number(name)));
  };
  return {read("comm.timeout_s"), read("comm.eval_timeout_s"), read("comm.small_timeout_s"),
          read("comm.medium_timeout_s"), read("comm.large_timeout_s")};
}

}  // namespace

void Control::Impl::follow_limits() {
  const Settings settings = gate_.settings();
  on_loss_ = settings.string("comm.on_loss");
  on_mismatch_ = settings.string("guard.on_mismatch");
  hard_limit_ = std::chrono::duration<double>(settings.number("comm.hard_limit_s"));
  replace_ = settings.boolean("comm.replace");
  if (collective_timeouts_) collective_timeouts_->follow(settings);
}

void Control::Impl::start() {
  follow_limits();
  participant_.emplace(Participant::Parts{options_.schema, gate_, *steerable_, *options_.channel,
                                          *options_.progress, options_.ledger, options_.run.host,
                                          options_.times});
  wanted_ = next_number_ = options_.channel->world_size();
  if (!options_.welcome.is_null()) join_run(options_.welcome);
  if (options_.channel->rank() == 0) start_rank_zero(options_.first_order_id);
  for (Committed& order : options_.ahead) {
    if (coordinator_) coordinator_->take_over(order);
    gate_.commit(std::move(order));
  }
  options_.ahead.clear();
  if (options_.ledger != nullptr && options_.channel->world_size() > 1)
    watchdog_.emplace(*options_.ledger, deadlines_of(options_.settings),
                      [this](const Watchdog::Finding& finding) { found(finding); });
  thread_ = Thread("control", [this] { loop(); });  // scripts/bench idle knows it by that name
}

void Control::Impl::finish(const Json& result) {
  if (!thread_.joinable()) return;
  result_ = result;
  watchdog_.reset();
  quit_ = true;
  join();
}

void Control::Impl::settle(milliseconds at_most) {
  if (!thread_.joinable()) return;
  MutexLock lock(settle_mutex_);
  settle_wanted_ = true;
  options_.channel->wake();
  settled_.wait_for(lock, at_most, [this] { return !settle_wanted_; });
}

void Control::Impl::request_stop(const char* reason, bool resumable) noexcept {
  const char* none = nullptr;
  if (stop_reason_.load() != nullptr) return;
  stop_resumable_.store(resumable);
  if (stop_reason_.compare_exchange_strong(none, reason)) options_.channel->wake();
}

void Control::Impl::take(const Json& line) {
  {
    MutexLock lock(taken_mutex_);
    taken_.push_back(line);
  }
  options_.channel->wake();
}

Json Control::Impl::status() const {
  MutexLock lock(status_mutex_);
  return status_;
}

void Control::Impl::set_steerable(Steerable& steerable) {
  steerable_ = &steerable;
  gate_.set_steerable(steerable);
}

void Control::Impl::join() {
  if (!thread_.joinable()) return;
  options_.channel->wake();
  thread_.join();
}

void Control::Impl::start_rank_zero(std::uint64_t first_order_id) {
  const auto now = Clock::now();
  follow_settings(gate_.settings().to_json());
  run_status_.emplace(options_.channel->world_size(), options_.times, now);
  coordinator_.emplace(
      Coordinator::Parts{options_.schema, *run_status_, options_.channel->world_size(),
                         [this](int to, const Json& message) { options_.channel->send(to, message); },
                         [this](const std::string& topic, Json data) {
                           if (topic == "warn" && data.value("kind", "") == "state_hash")
                             differing_.push_back(data);
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
      },
      options_.times.console_survives});
}

void Control::Impl::watch_collectives() {
  const int world_size = options_.channel->world_size();
  const auto send_all = [this](const Json& message) { this->send_all(message); };
  rank_barrier_.emplace(RankBarrier::Parts{*run_status_, world_size, send_all});
  advice_.emplace(Advice::Parts{
      options_.schema, *run_status_, options_.ledger, world_size, options_.first_order_id,
      [this](Order order) { return coordinator_->submit_own(std::move(order), Clock::now()); },
      [this](Json data) { report("warn", std::move(data), std::chrono::system_clock::now()); }});
  advice_->follow(gate_.settings().to_json());
  collective_timeouts_.reset();
  if (options_.world != nullptr) {
    collective_timeouts_.emplace(
        CollectiveTimeouts::Parts{
            *run_status_, world_size, send_all,
            [this](Json data) { report("warn", std::move(data), std::chrono::system_clock::now()); },
            options_.times},
        timeouts_so_far_);
    collective_timeouts_->follow(gate_.settings());
  }
  collectives_.emplace(CollectiveWatch::Parts{
      *run_status_, options_.ledger, world_size, send_all,
      [this](const std::string& topic, Json data) {
        report(topic, std::move(data), std::chrono::system_clock::now());
      },
      options_.times, &*advice_, collective_timeouts_ ? &*collective_timeouts_ : nullptr});
  stacks_.emplace(StackInquiries::Parts{
      *run_status_, world_size, [this](int to, const Json& message) { options_.channel->send(to, message); },
      [this](const std::string& topic, Json data) {
        report(topic, std::move(data), std::chrono::system_clock::now());
      },
      options_.times});
}

void Control::Impl::send_all(const Json& message) {
  for (int rank = 0; rank < options_.channel->world_size(); ++rank) options_.channel->send(rank, message);
}

void Control::Impl::loop() {
  while (!quit_) {
    try {
      turn(Clock::now());
      options_.channel->wait(sleep(), link_ ? link_->fd() : -1);
    } catch (const std::exception& error) {
      // A malformed message must not end the thread that everybody relies on.
      complain(error);
    }
  }
  end_console();
}

void Control::Impl::turn(Clock::time_point now) {
  const bool broken = options_.world != nullptr && options_.world->broken();
  if (training_ended_)
    rebuild_due_ = false;
  else if (broken || rebuild_due_)
    recover(now);
  if (quit_) return;
  handle_messages(now);
  if (recovering_) tick_recovery();
  if (link_) link_->pump(now);
  handle_taken();
  handle_gate();
  if (admission_due_) return admit(now);
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

void Control::Impl::handle_messages(Clock::time_point now, int most) {
  for (int i = 0; i < most; ++i) {
    const auto message = options_.channel->poll();
    if (!message) return;
    const std::string type = message->body.value("t", "");
    if (type == message::kStanding) on_standing(message->source, message->body, now);
    if (type == message::kRejoin) on_rejoin(message->body);
    if (type == message::kRemedy) on_remedy(message->body);
    if (coordinator_) {
      coordinator_->handle(message->source, message->body, now);
      rank_barrier_->handle(message->source, message->body, now);
      collectives_->handle(message->source, message->body, now);
      if (collective_timeouts_) collective_timeouts_->handle(message->source, message->body);
      stacks_->handle(message->source, message->body, now);
    }
    if (message->source == 0) participant_->handle(message->body);
    if (coordinator_ && message->source == 0 && message->body["t"] == message::kBeat)
      on_own_beat(message->body);
  }
}

void Control::Impl::on_own_beat(const Json& beat) {
  const bool same_state = status_.value("state", "") == beat.value("state", "");
  if (std::exchange(asked_, false) || followed_ || !same_state || ++beats_untold_ >= kBeatsUntold)
    renew_status();
}

void Control::Impl::handle_taken() {
  std::vector<Json> lines;
  {
    MutexLock lock(taken_mutex_);
    lines.swap(taken_);
  }
  for (const Json& line : lines) on_console(line);
}

void Control::Impl::found(const Watchdog::Finding& finding) {
  {
    MutexLock lock(taken_mutex_);
    findings_.push_back(finding);
  }
  options_.channel->wake();
}

void Control::Impl::handle_findings() {
  std::vector<Watchdog::Finding> findings;
  {
    MutexLock lock(taken_mutex_);
    findings.swap(findings_);
  }
  for (const auto& finding : findings) participant_->tell(finding);
}

void Control::Impl::handle_gate() {
  for (GateEvent& event : gate_.drain()) {
    try {
      handle(event);
    } catch (const std::exception& error) {
      // The others of this turn must not be lost with it: one may be the end that everybody awaits.
      complain(error);
    }
  }
}

void Control::Impl::handle_settle() {
  {
    MutexLock lock(settle_mutex_);
    if (!settle_wanted_) return;
  }
  handle_gate();
  MutexLock lock(settle_mutex_);
  settle_wanted_ = false;
  settled_.notify_all();
}

void Control::Impl::handle(GateEvent& event) {
  if (auto* published = std::get_if<Published>(&event)) {
    if (run_status_ && published->topic == "metrics") run_status_->metrics(published->data);
    report(published->topic, std::move(published->data), published->time, published->hold);
    return;
  }
  if (auto* proposed = std::get_if<Proposed>(&event)) {
    proposed_.push_back(std::move(proposed->order));
    return;
  }
  participant_->handle(event);
  if (const auto* call = std::get_if<CallMoved>(&event); call && call->action == kAdmit)
    admission_due_ = call->state == "done";
  if (const auto* applied = std::get_if<OrderApplied>(&event)) {
    record(*applied);
    follow_limits();
    if (watchdog_) watchdog_->set(deadlines_of(gate_.settings()));
  }
}

void Control::Impl::complain(const std::exception& error) {
  report("warn", {{"kind", "control"}, {"text", std::string("control thread: ") + error.what()}},
         std::chrono::system_clock::now());
}

void Control::Impl::record(const OrderApplied& applied) {
  if (!options_.observer || applied.error) return;
  Json moved = Json::array();
  for (const auto& one : applied.moved)
    moved.push_back({{"name", one.name}, {"before", to_json(one.before)}, {"after", to_json(one.after)}});
  options_.observer("applied", {{"order", applied.order},
                                {"step", applied.step},
                                {"digest", applied.digest},
                                {"moved", std::move(moved)}});
}

void Control::Impl::handle_stop_request() {
  const char* reason = stop_reason_.load();
  if (reason == nullptr || stop_told_) return;
  stop_told_ = true;
  participant_->ask_to_stop(reason, stop_resumable_.load());
}

void Control::Impl::tick_rank_zero(Clock::time_point now) {
  stacks_->tick(now);
  if (recovering_) {
    coordinator_->tick(now);
    watch_recovery(now);
    return;
  }
  if (time_limit_.count() > 0 && now >= options_.process_start + time_limit_)
    coordinator_->stop("time limit", /*resumable=*/true, now);
  coordinator_->tick(now);
  enforce_hard_limit(now);
  look_for_replacement(now);
  for (const Json& differing : std::exchange(differing_, {})) on_difference(differing, now);
  rank_barrier_->tick(now);
  collectives_->tick(now);
  advice_->tick(now);
  while (!proposed_.empty() && coordinator_->submit_own(proposed_.front(), now) != 0) proposed_.pop_front();
  if (collective_timeouts_) tick_timeouts(now);
}

milliseconds Control::Impl::sleep() const {
  const auto now = Clock::now();
  auto next = participant_->next_tick();
  if (coordinator_)
    next = std::min({next, coordinator_->next_tick(), rank_barrier_->next_tick(), collectives_->next_tick()});
  if (collective_timeouts_) next = std::min(next, collective_timeouts_->next_tick());
  if (stacks_) next = std::min(next, stacks_->next_tick());
  if (link_) next = std::min(next, link_->next_pump());
  auto most = options_.times.heartbeat;
  if (gate_.streaming()) most = std::min(most, kStreaming);
  const bool awaiting =
      participant_->awaiting_outcome() ||
      (coordinator_ && (coordinator_->awaiting_outcome() || rank_barrier_->awaiting_ranks() ||
                        collectives_->awaiting_answers() || stacks_->awaiting_answers() ||
                        (collective_timeouts_ && collective_timeouts_->awaiting_ranks())));
  if (awaiting && !options_.channel->rings()) most = std::min(most, kImpatient);
  if (next <= now || admission_due_ || rebuild_due_) return milliseconds(0);
  if (next - now >= most) return most;
  return std::chrono::ceil<milliseconds>(next - now);
}

void Control::Impl::end_console() {
  handle_gate();
  participant_->say_goodbye();
  if (link_) link_->finish({{"type", "end"}, {"result", result_}}, options_.times.console_reads_end);
}

// --- the door ---

Control::Control(ControlOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Control::~Control() = default;
void Control::set_steerable(Steerable& steerable) {
  impl_->set_steerable(steerable);
}
void Control::start() {
  impl_->start();
}
StepGate& Control::gate() {
  return impl_->gate().training();
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
