#include "runtime/control/control_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "protocol/overloaded.h"

#include "runtime/schema/actions.h"
#include "runtime/watch/event_parts.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;

/// While events stream, the control thread looks for them this often instead of being woken by each: people
/// see no difference, and most of what an event costs is the waking.
constexpr milliseconds kStreaming{200};
/// While an outcome is awaited from ranks whose messages don't ring.
constexpr milliseconds kImpatient{1};

Deadlines deadlines_of(const Settings& settings) {
  const auto read = [&](const char* name) {
    return std::chrono::duration_cast<Deadlines::Duration>(
        std::chrono::duration<double>(settings.number(name)));
  };
  return {read("comm.timeout_s"), read("comm.eval_timeout_s"), read("comm.small_timeout_s"),
          read("comm.medium_timeout_s"), read("comm.large_timeout_s")};
}

}  // namespace

ControlLoop::ControlLoop(ControlOptions options)
    : options_(std::move(options)),
      gate_(
          options_.schema, options_.settings, *options_.progress, [this] { options_.channel->wake(); },
          options_.store) {
  gate_.set_recoverable(options_.world != nullptr);
  gate_.set_start(options_.run.started);
}

ControlLoop::~ControlLoop() {
  watchdog_.reset();
  quit_ = true;
  join();
}

void ControlLoop::set_steerable(Steerable& steerable) {
  steerable_ = &steerable;
  gate_.set_steerable(steerable);
}

void ControlLoop::start() {
  participant_.emplace(Participant::Parts{options_.schema, gate_, *steerable_, *options_.channel,
                                          *options_.progress, options_.ledger, options_.run.directory,
                                          options_.run.host, options_.times});
  recovery_.emplace(RankRecovery::Parts{
      options_, gate_, *participant_, rank_zero_, [this](Clock::time_point now) { return catch_up(now); },
      [this] { handle_gate(); }, [this](std::uint64_t first_order_id) { start_rank_zero(first_order_id); },
      [this](const std::string& why) { give_up(why); }, [this] { requests_.tell_stop_again(); }});
  follow_settings();
  if (options_.welcome) recovery_->join_run(*options_.welcome);
  if (options_.channel->rank() == 0) start_rank_zero(options_.first_order_id);
  for (Committed& order : options_.ahead) {
    if (rank_zero_) rank_zero_->coordinator().take_over(order);
    gate_.commit(std::move(order));
  }
  options_.ahead.clear();
  if (options_.ledger != nullptr && options_.channel->world_size() > 1)
    watchdog_.emplace(*options_.ledger, deadlines_of(options_.settings),
                      [this](const Watchdog::Finding& finding) {  // the watchdog's thread
                        requests_.add_finding(finding);
                        options_.channel->wake();
                      });
  thread_ = Thread("control", [this] { loop(); });  // scripts/bench idle knows it by that name
}

void ControlLoop::finish(const RunResult& result) {
  if (!thread_.joinable()) return;
  result_ = result;
  watchdog_.reset();
  quit_ = true;
  join();
}

void ControlLoop::join() {
  if (!thread_.joinable()) return;
  options_.channel->wake();
  thread_.join();
}

void ControlLoop::request_stop(const char* reason, bool resumable) noexcept {
  if (requests_.request_stop(reason, resumable)) options_.channel->wake();
}

void ControlLoop::take(ConsoleMessage message) {
  requests_.add_message(std::move(message));
  options_.channel->wake();
}

void ControlLoop::settle(milliseconds at_most) {
  if (!thread_.joinable()) return;
  requests_.wait_settled(at_most, [this] { options_.channel->wake(); });
}

void ControlLoop::start_rank_zero(std::uint64_t first_order_id) {
  rank_zero_ = std::make_unique<RankZero>(
      RankZero::Parts{options_, gate_, *participant_, recovery_->numbers(), board_}, first_order_id);
}

void ControlLoop::loop() {
  while (!quit_) {
    try {
      turn(Clock::now());
      options_.channel->wait(sleep(), rank_zero_ ? rank_zero_->console().fd() : -1);
    } catch (const std::exception& error) {
      complain(error.what());
    }
  }
  end();
}

void ControlLoop::turn(Clock::time_point now) {
  const bool broken = options_.world != nullptr && options_.world->broken();
  if (training_ended_)
    recovery_->set_rebuild_due(false);
  else if (broken || recovery_->rebuild_due() || (!recovery_->under_way() && recovery_->has_lone_loss(now)))
    recovery_->recover(now);
  if (quit_) return;
  handle_messages(now);
  if (recovery_->under_way()) recovery_->tick();
  recovery_->end_if_due(now);
  if (rank_zero_) rank_zero_->console().pump(now);
  handle_requests();
  handle_gate();
  if (recovery_->admission_due()) return recovery_->admit(now);
  handle_settle();
  handle_findings();
  if (!recovery_->under_way())
    if (const auto stop = requests_.take_stop()) participant_->ask_to_stop(stop->reason, stop->resumable);
  const bool beat = participant_->tick(now);
  if (!rank_zero_) return;
  tick_rank_zero(now);
  // Rank 0's own heartbeat: now, rather than after another round. In a turn that isn't about one, what has
  // rung gets a second look (MPI may have been busy).
  handle_messages(now, beat ? 1 : kMessagesATurn);
}

void ControlLoop::handle_messages(Clock::time_point now, int most) {
  for (int i = 0; i < most; ++i) {
    const auto received = options_.channel->poll();
    if (!received) return;
    const auto message = message::decoded(received->bytes);
    if (!message) {
      complain(fmt::format("rank {} sent: {}", received->source, message.error().message));
      continue;
    }
    std::visit(Overloaded{[&](const message::ToRanks& one) { handle(received->source, one); },
                          [&](const message::ToRankZero& one) {
                            handle(received->source, one, now);
                            received->others.for_each([&](int other) { handle(other, one, now); });
                          }},
               *message);
  }
}

void ControlLoop::handle(int source, const message::ToRanks& message) {
  std::visit(
      Overloaded{[&](const message::Rejoin& verdict) { recovery_->handle(verdict); },
                 [&](const message::Remedy& remedy) { recovery_->handle(remedy); }, [](const auto&) {}},
      message);
  if (source == 0) participant_->handle(message);
}

void ControlLoop::handle(int source, const message::ToRankZero& message, Clock::time_point now) {
  if (const auto* standing = std::get_if<message::Standing>(&message))
    recovery_->handle(source, *standing, now);
  if (!rank_zero_) return;
  rank_zero_->handle(source, message, now);
  if (const auto* beat = std::get_if<message::Beat>(&message); beat != nullptr && source == 0)
    rank_zero_->console().on_own_beat(*beat);
}

void ControlLoop::handle_requests() {
  for (ConsoleMessage& message : requests_.take_messages())
    if (rank_zero_) rank_zero_->handle(std::move(message));  // else another rank leads
}

void ControlLoop::handle_findings() {
  for (const auto& finding : requests_.take_findings()) participant_->tell(finding);
}

void ControlLoop::handle_gate() {
  for (GateEvent& event : gate_.drain()) {
    try {
      handle(event);
    } catch (const std::exception& error) {
      // The others of this turn must not be lost with it: one may be the end that everybody awaits.
      complain(error.what());
    }
  }
}

void ControlLoop::handle_settle() {
  if (!requests_.settle_wanted()) return;
  handle_gate();
  requests_.settled();
}

void ControlLoop::handle(GateEvent& event) {
  if (auto* published = std::get_if<Published>(&event)) {
    const auto* metrics = std::get_if<LoggedMetrics>(&published->data);
    if (rank_zero_ && metrics != nullptr) rank_zero_->measured(*metrics);
    report(std::move(published->data), published->time, published->hold);
    return;
  }
  if (auto* proposed = std::get_if<Proposed>(&event)) {
    if (rank_zero_) rank_zero_->propose(std::move(proposed->order));
    return;
  }
  if (std::holds_alternative<AllLevel>(event)) recovery_->all_are_level(Clock::now());
  participant_->handle(event);
  if (const auto* call = std::get_if<CallMoved>(&event); call && call->action == kAdmit)
    recovery_->set_admission_due(call->state == CallState::done);
  if (const auto* applied = std::get_if<OrderApplied>(&event)) {
    if (options_.observer && !applied->error) options_.observer(*applied);  // as this rank saw it
    follow_settings();
    if (watchdog_) watchdog_->set(deadlines_of(gate_.settings()));
  }
}

void ControlLoop::tick_rank_zero(Clock::time_point now) {
  if (const auto heard = options_.channel->heard_of()) rank_zero_->handle(*heard, now);
  if (recovery_->under_way()) return rank_zero_->tick_recovery(now);
  switch (rank_zero_->tick(now)) {
    case CollectiveTimeouts::Due::nothing:
      break;
    case CollectiveTimeouts::Due::rebuild:
      recovery_->set_rebuild_due(true);
      break;
    case CollectiveTimeouts::Due::stop:
      give_up(recovery_->remedy());
      break;
  }
}

milliseconds ControlLoop::sleep() const {
  const auto now = Clock::now();
  auto next = participant_->next_tick();
  if (rank_zero_) next = std::min(next, rank_zero_->next_tick());
  auto most = options_.times.heartbeat;
  if (gate_.streaming()) most = std::min(most, kStreaming);
  const bool awaiting = participant_->awaiting_outcome() || (rank_zero_ && rank_zero_->awaiting());
  if (awaiting && !options_.channel->rings()) most = std::min(most, kImpatient);
  if (next <= now || recovery_->is_due()) return milliseconds(0);
  if (next - now >= most) return most;
  return std::chrono::ceil<milliseconds>(next - now);
}

void ControlLoop::end() {
  handle_gate();
  participant_->say_goodbye();
  if (rank_zero_) rank_zero_->console().finish(result_);
}

bool ControlLoop::catch_up(Clock::time_point now) {
  constexpr int kAll = std::numeric_limits<int>::max();
  handle_messages(now, kAll);
  handle_gate();
  handle_messages(now, kAll);
  return !quit_;
}

void ControlLoop::give_up(const std::string& why) {
  options_.channel->wake_peers();  // they notice the loss now, and not with their next heartbeat
  if (options_.give_up) options_.give_up(why);
  gate_.give_up(why);
  quit_ = true;
}

void ControlLoop::follow_settings() {
  const Settings settings = gate_.settings();
  recovery_->follow(settings);
  if (rank_zero_) rank_zero_->follow(settings);
}

void ControlLoop::report(EventData event, RankZero::WallTime time, std::uint64_t hold) {
  if (rank_zero_)
    rank_zero_->report(std::move(event), time, hold);
  else if (options_.observer)
    options_.observer(std::move(event));
}

void ControlLoop::complain(const std::string& what) {
  report(warning_of(WarningKind::control, "control thread: " + what), std::chrono::system_clock::now());
}

}  // namespace footplate
