// What rank 0 does for the others, in processor time: an order, a round of heartbeats, a turn of its control
// thread. The parts that do it are the real ones, and what comes and goes is encoded as on the way; what MPI
// costs is not in it. Arguments: the numbers of ranks. Prints a line of JSON.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/control/stuck_ranks.h"
#include "runtime/control/world_watch.h"
#include "runtime/orders/coordinator.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using Clock = SteadyClock;
using Bytes = std::vector<std::uint8_t>;

/// Messages handled before the clock is looked at, as ControlLoop does.
constexpr int kMessagesATurn = 1000;
/// Messages that each figure is of, at least.
constexpr int kMessages = 60000;
constexpr int kLeastRounds = 7;
constexpr int kTurns = 200;

/// Processor time of this thread: whoever else uses the machine doesn't count.
double now_ms() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Keeps what is sent until the next turn, one by one.
class KeepingChannel final : public MessageChannel {
 public:
  explicit KeepingChannel(int world_size) : world_size_(world_size) {}
  int rank() const override { return 0; }
  int world_size() const override { return world_size_; }
  void send(int /*to*/, const MessageBytes& bytes) override { sending_.push_back(bytes); }
  void forget_sent() { sending_.clear(); }
  std::optional<Message> poll() override { return std::nullopt; }
  void wait(std::chrono::milliseconds /*at_most*/, int /*extra_fd*/) override {}
  void wake() override {}

 private:
  int world_size_;
  std::list<MessageBytes> sending_;
};

/// RankZero without its console.
class RankZeroOfMany {
 public:
  explicit RankZeroOfMany(int world_size)
      : world_size_(world_size),
        channel_(world_size),
        status_(world_size, times_, now_),
        coordinator_({schema_, status_, world_size,
                      [this](const message::ToRanks& message) { send_all(message); },
                      [this](const Report& report) { note(report); }, times_, 1}),
        stuck_({status_, channel_, [this](const message::ToRanks& message) { send_all(message); },
                [this](const RankChange&) { ++surprises_; }, nullptr}),
        watch_({schema_, status_, channel_, &ledger_, times_, 1, &timeouts_, [](const Order&) { return 0U; },
                [this](const Report&) { ++surprises_; },
                [this](const message::ToRanks& message) { send_all(message); }},
               Settings::defaults(schema_)) {
    stuck_.follow(Settings::defaults(schema_));
  }

  /// The same from every rank, with a turn of the control thread after as many as it handles in one.
  void deliver(const std::vector<Bytes>& from_ranks) {
    for (int rank = 0; rank < world_size_; ++rank) {
      deliver_one(rank, from_ranks[static_cast<std::size_t>(rank) % from_ranks.size()]);
      if (rank % kMessagesATurn == kMessagesATurn - 1) turn();
    }
    turn();
  }

  void deliver_one(int rank, const Bytes& bytes) {
    const auto message = message::decoded(bytes);
    const auto& one = std::get<message::ToRankZero>(*message);
    coordinator_.handle(rank, one, now_);
    watch_.handle(rank, one, now_);
  }

  void turn() {
    channel_.forget_sent();
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

  void go_on_in_time() { now_ += times_.heartbeat; }
  Ledger& ledger() { return ledger_; }

  Clock::time_point now() const { return now_; }
  std::string status_line() const { return to_json(status_.run_status(1000, now_)).dump(); }
  std::uint64_t applied() const { return applied_; }
  int surprises() const { return surprises_; }

 private:
  void send_all(const message::ToRanks& message) { channel_.send_to_all(encoded(message)); }
  void note(const Report& report) {
    const auto* event = std::get_if<EventData>(&report);
    const auto* order = event != nullptr ? std::get_if<OrderReport>(event) : nullptr;
    if (order != nullptr && order->state == OrderState::applied) ++applied_;
    if (event != nullptr && order == nullptr) ++surprises_;
  }

  int world_size_;
  Schema schema_ = runtime_schema();
  ControlTimes times_;
  Clock::time_point now_{std::chrono::seconds(1000)};
  Ledger ledger_;
  CollectiveTimeouts::Memory timeouts_;
  KeepingChannel channel_;
  StatusTracker status_;
  Coordinator coordinator_;
  StuckRanks stuck_;
  WorldWatch watch_;
  Clock::time_point next_;
  std::uint64_t applied_ = 0;
  int surprises_ = 0;  ///< what no run without a fault reports
};

Bytes bytes_of(const message::ToRankZero& message) {
  return *encoded(message);
}

/// A round's heartbeats; `newest` is each rank's newest collective.
std::vector<Bytes> beats(int world_size, Clock::time_point now, const message::Launched& newest) {
  std::vector<Bytes> all;
  for (int rank = 0; rank < world_size; ++rank) {
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
    all.push_back(bytes_of(beat));
  }
  return all;
}

/// The order from the console to its report that all have applied it.
double order_ms(RankZeroOfMany& zero, std::uint64_t number) {
  message::Applied applied;
  applied.order = number;
  applied.step = 101;
  applied.digest = "0123456789abcdef";
  const std::vector<std::vector<Bytes>> answers{{bytes_of(message::Prepared{number, ""})},
                                                {bytes_of(message::Fenced{number, 100})},
                                                {bytes_of(applied)}};
  const double start = now_ms();
  zero.submit();
  for (const auto& answer : answers) zero.deliver(answer);
  return now_ms() - start;
}

message::Launched launch(Ledger& ledger) {
  LedgerEntry entry;
  entry.kind = Collective::all_reduce;
  entry.name = "gradients";
  entry.elements = 1000;
  const std::uint64_t sequence = ledger.enqueue(entry);
  ledger.start(sequence);
  ledger.finish(sequence);
  return {sequence, ledger.find(sequence)->digest};
}

/// A round in which the others have launched one more. `behind`: rank 0 launches it after they have said so,
/// and its next heartbeat has all of them compared.
double beats_ms(RankZeroOfMany& zero, Ledger& of_others, int world_size, bool behind) {
  zero.go_on_in_time();
  const message::Launched newest = launch(of_others);
  const auto round = beats(world_size, zero.now(), newest);
  if (!behind) launch(zero.ledger());
  double start = now_ms();
  zero.deliver(round);
  const double took = now_ms() - start;
  if (!behind) return took;
  launch(zero.ledger());
  start = now_ms();
  zero.deliver_one(0, round[0]);
  return took + now_ms() - start;
}

Json measure(int world_size) {
  RankZeroOfMany zero(world_size);
  Ledger of_others;
  const int rounds = std::max(kLeastRounds, kMessages / world_size);
  std::vector<double> orders, level, behind, turns;
  for (int round = 0; round < rounds; ++round) {
    level.push_back(beats_ms(zero, of_others, world_size, false));
    behind.push_back(beats_ms(zero, of_others, world_size, true));
    orders.push_back(order_ms(zero, static_cast<std::uint64_t>(round) + 1));
  }
  for (int round = 0; round < kTurns; ++round) {
    const double start = now_ms();
    zero.turn();
    turns.push_back(now_ms() - start);
  }
  const double start = now_ms();
  const std::size_t status_bytes = zero.status_line().size();
  const double status_ms = now_ms() - start;
  if (zero.applied() != static_cast<std::uint64_t>(rounds) || zero.surprises() > 0) std::exit(1);
  return {{"ranks", world_size},
          {"order_ms", median(orders)},
          {"beats_ms", median(level)},
          {"beats_behind_ms", median(behind)},
          {"turn_us", median(turns) * 1e3},
          {"status_ms", status_ms},
          {"status_bytes", status_bytes}};
}

}  // namespace
}  // namespace footplate

int main(int argc, char** argv) {
  footplate::Json all = footplate::Json::array();
  for (int argument = 1; argument < argc; ++argument)
    all.push_back(footplate::measure(std::atoi(argv[argument])));
  std::printf("%s\n", all.dump().c_str());
}
