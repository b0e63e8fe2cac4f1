#pragma once

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/control/stuck_ranks.h"
#include "runtime/control/world_watch.h"
#include "runtime/orders/coordinator.h"
#include "runtime/schema/schema_table.h"

// For the benchmarks of the control plane: rank 0, and what it is told.
namespace footplate {

using Clock = SteadyClock;
using Bytes = std::vector<std::uint8_t>;

/// Processor time of this thread: whoever else uses the machine doesn't count.
inline double now_ms() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// RankZero without its console.
class RankZeroOfMany {
 public:
  /// `channel` outlives it.
  RankZeroOfMany(int world_size, MessageChannel& channel)
      : channel_(channel),
        status_(world_size, times_, now_),
        coordinator_({schema_, status_, world_size,
                      [this](const message::ToRanks& message) { send_all(message); },
                      [this](const Report& report) { note(report); }, times_, 1}),
        stuck_({status_, channel_, [this](const message::ToRanks& message) { send_all(message); },
                [this](const RankChange&) { ++surprises_; }, nullptr}),
        advice_({schema_, status_, &ledger_, world_size, 1, [](const Order&) { return 0U; },
                 [this](const Warning&) { ++surprises_; }}),
        watch_({status_, channel_, &ledger_, times_, advice_, &timeouts_,
                [this](const Report&) { ++surprises_; },
                [this](const message::ToRanks& message) { send_all(message); }},
               Settings::defaults(schema_)) {
    advice_.follow(all_settings(Settings::defaults(schema_)));
    stuck_.follow(Settings::defaults(schema_));
  }

  /// What a rank, and `others`, say.
  void deliver(int source, const Bytes& bytes, const RankSet& others = {}) {
    const auto message = message::decoded(bytes);
    const auto& one = std::get<message::ToRankZero>(*message);
    const auto handle = [&](int rank) {
      coordinator_.handle(rank, one, now_);
      watch_.handle(rank, one, now_);
    };
    handle(source);
    others.for_each(handle);
  }
  void deliver(const HeardOf& heard) { status_.heard_of(heard, now_); }

  void turn() {
    watch_.tick_inquiries(now_);
    coordinator_.tick(now_);
    stuck_.tick(now_);
    watch_.tick(now_);
    if (watch_.tick_timeouts(now_) != CollectiveTimeouts::Due::nothing) ++surprises_;
    next_ = std::min(coordinator_.next_tick(), watch_.next_tick());
  }

  void submit() {
    SubmitOrder submitted;
    submitted.ref = "bench";
    submitted.order =
        order_from_json({{"changes", Json::array({{{"name", "log.every"}, {"value", 10}}})}, {"user", "u"}});
    coordinator_.submit(std::move(submitted), now_);
  }

  void set_now(Clock::time_point now) { now_ = now; }
  Ledger& ledger() { return ledger_; }

  Clock::time_point now() const { return now_; }
  std::string status_line() const { return to_json(status_.run_status(1000, now_)).dump(); }
  std::uint64_t committed() const { return committed_; }
  std::uint64_t applied() const { return applied_; }
  int surprises() const { return surprises_; }

 private:
  void send_all(const message::ToRanks& message) { channel_.send_to_all(encoded(message)); }
  void note(const Report& report) {
    const auto* event = std::get_if<EventData>(&report);
    const auto* order = event != nullptr ? std::get_if<OrderReport>(event) : nullptr;
    if (order != nullptr && order->state == OrderState::committed) ++committed_;
    if (order != nullptr && order->state == OrderState::applied) ++applied_;
    if (event != nullptr && order == nullptr) ++surprises_;
  }

  Schema schema_ = runtime_schema();
  ControlTimes times_;
  Clock::time_point now_{std::chrono::seconds(1000)};
  Ledger ledger_;
  CollectiveTimeouts::Memory timeouts_;
  MessageChannel& channel_;
  StatusTracker status_;
  Coordinator coordinator_;
  StuckRanks stuck_;
  Advice advice_;
  WorldWatch watch_;
  Clock::time_point next_;
  std::uint64_t committed_ = 0, applied_ = 0;
  int surprises_ = 0;  ///< what no run without a fault reports
};

inline Bytes bytes_of(const message::ToRankZero& message) {
  return *encoded(message);
}

/// A heartbeat; `newest` is the rank's newest collective.
inline Bytes beat_of(int rank, Clock::time_point now, const message::Launched& newest) {
  message::Beat beat;
  beat.at_ns = std::chrono::nanoseconds(now.time_since_epoch()).count();
  beat.host = "accelerator-node-" + std::to_string(rank / 8);
  beat.pid = 100000 + rank;
  beat.step = static_cast<std::int64_t>(newest.sequence);
  beat.phase = Phase::reduce;
  beat.phase_s = 0.0123;
  beat.state = RunState::running;
  beat.best_eval_loss = 1.234;
  beat.collective = CollectiveStatus{newest.sequence, "all_reduce", 124000000, true, 0.0123};
  beat.launched = newest;
  return bytes_of(beat);
}

/// A line of JSON: what `measure` has for each of these numbers of ranks.
inline void print_measured(const std::vector<const char*>& ranks, Json (*measure)(int ranks)) {
  Json all = Json::array();
  for (const char* number : ranks) all.push_back(measure(std::atoi(number)));
  std::printf("%s\n", all.dump().c_str());
}

}  // namespace footplate
