// What an order takes, and what rank 0 does, where the ranks speak through a tree (runtime/comm/tree). All
// ranks are simulated on one thread: each has the real channel, rank 0 also the real parts of its control
// thread. A turn of a rank lasts as long as the processor took for it, a message a hop of 0.1 ms and a random
// rest. What MPI costs is not in it. Arguments: the numbers of ranks. Prints a line of JSON.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

#include "runtime/watch/merged_messages.h"
#include "tests/peers/rank_zero_of_many.h"
#include "tests/unit/comm/tree_net.h"

namespace footplate {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::TreeNet;

constexpr int kOrders = 15;
constexpr milliseconds kBetweenOrders{337};  // at all moments between two heartbeats
constexpr seconds kLeftAlone{20};

/// A run in which nothing happens but orders. Ranks beside rank 0 answer as a Participant does.
class RunOfMany {
 public:
  RunOfMany(int ranks, std::uint64_t seed)
      : net_({.ranks = ranks,
              .seed = seed,
              .hop = microseconds(100),
              .most_delay = microseconds(50),
              .tree = {.merge = merged}},
             [this](int rank) { return turn(rank); }),
        zero_(ranks, net_.channel(0)),
        next_beat_(static_cast<std::size_t>(ranks)) {
    LedgerEntry entry;
    entry.name = "gradients";
    zero_.ledger().finish(zero_.ledger().enqueue(entry));
    launched_ = {zero_.ledger().newest(), zero_.ledger().find(zero_.ledger().newest())->digest};
  }

  void run_for(Clock::duration time) { net_.run_until(net_.now() + time); }

  /// In ms from submitting it: until rank 0 has committed it, and until all have applied it.
  struct OrderTook {
    double committed = 0;
    double applied = 0;
  };
  OrderTook order() {
    submits_ = true;
    submitted_at_ = net_.now();
    committed_at_ = applied_at_ = {};
    net_.wake(0, net_.now());
    while (!applied_at_ && net_.now() < submitted_at_ + seconds(4)) run_for(microseconds(50));
    if (!applied_at_) std::exit(1);
    return {in_seconds(*committed_at_ - submitted_at_) * 1e3, in_seconds(*applied_at_ - submitted_at_) * 1e3};
  }

  /// A host's ranks stand for three seconds, some of them right below rank 0: it has to name them, and nobody
  /// else.
  void stand() {
    constexpr int kOfAHost = 8;
    const int before = zero_.surprises();
    for (int rank = 1; rank <= kOfAHost; ++rank) net_.stop(rank, net_.now() + seconds(3));
    run_for(seconds(6));
    if (zero_.surprises() != before + 2 * kOfAHost) std::exit(1);  // they are silent, and they are back
  }

  /// Processor time of rank 0 so far.
  double zero_ms() const { return zero_ms_; }
  std::uint64_t zero_sent() const { return net_.sent_by(0); }
  int surprises() const { return zero_.surprises(); }

 private:
  TreeNet::Rest turn(int rank) {
    const double start = now_ms();
    auto& next_beat = next_beat_[static_cast<std::size_t>(rank)];
    if (rank == 0)
      turn_of_zero();
    else
      while (const auto message = net_.channel(rank).poll()) answer(rank, *message);
    if (net_.now() >= next_beat) beat(rank, next_beat);
    const double took = now_ms() - start;
    if (rank == 0) zero_ms_ += took;
    const microseconds lasts{static_cast<std::int64_t>(took * 1e3)};
    if (rank == 0) note_order(lasts);
    return {next_beat, lasts};
  }

  /// As ControlLoop has it.
  void turn_of_zero() {
    zero_.set_now(net_.now());
    if (std::exchange(submits_, false)) zero_.submit();
    while (const auto message = net_.channel(0).poll()) {
      if (!answer(0, *message)) zero_.deliver(message->source, message->bytes, message->others);
    }
    if (const auto heard = net_.channel(0).heard_of()) zero_.deliver(*heard);
    zero_.turn();
  }

  void note_order(microseconds lasts) {
    if (!committed_at_ && zero_.committed() > committed_) committed_at_ = net_.now() + lasts;
    if (!applied_at_ && zero_.applied() > applied_) applied_at_ = net_.now() + lasts;
    if (applied_at_) {
      committed_ = zero_.committed();
      applied_ = zero_.applied();
    }
  }

  /// As Participant::beat_after().
  void beat(int rank, Clock::time_point& next) {
    MessageChannel& channel = net_.channel(rank);
    const Clock::duration every = ControlTimes().heartbeat;
    const Clock::duration lag = every / 12 * channel.height();
    next = Clock::time_point((((net_.now().time_since_epoch() - lag) / every) + 1) * every + lag);
    channel.send_quietly(0, std::make_shared<const Bytes>(beat_of(rank, net_.now(), launched_)));
  }

  /// Whether it was a message to the ranks.
  bool answer(int rank, const Message& message) {
    const auto read = message::decoded(message.bytes);
    const auto* to_ranks = std::get_if<message::ToRanks>(&*read);
    if (to_ranks == nullptr) return false;
    const auto say = [&](const message::ToRankZero& said) { net_.channel(rank).send(0, encoded(said)); };
    if (const auto* prepare = std::get_if<message::Prepare>(to_ranks))
      say(message::Prepared{prepare->ticket, ""});
    if (const auto* fence = std::get_if<message::Fence>(to_ranks))
      say(message::Fenced{fence->ticket, 100 + rank % 2});  // one is a step ahead
    if (const auto* commit = std::get_if<message::Commit>(to_ranks)) {
      message::Applied applied;
      applied.order = commit->ticket;
      applied.step = commit->step;
      applied.digest = "0123456789abcdef";
      say(applied);
    }
    return true;
  }

  TreeNet net_;
  RankZeroOfMany zero_;
  message::Launched launched_;
  std::vector<Clock::time_point> next_beat_;
  bool submits_ = false;
  Clock::time_point submitted_at_;
  std::optional<Clock::time_point> committed_at_, applied_at_;
  std::uint64_t committed_ = 0, applied_ = 0;
  double zero_ms_ = 0;
};

Json measure(int ranks) {
  RunOfMany run(ranks, 1);
  run.run_for(seconds(5));
  std::vector<double> committed, applied;
  for (int order = 0; order < kOrders; ++order) {
    run.run_for(kBetweenOrders);
    const auto took = run.order();
    committed.push_back(took.committed);
    applied.push_back(took.applied);
  }
  const double before = run.zero_ms();
  const std::uint64_t sent = run.zero_sent();
  run.run_for(kLeftAlone);
  if (run.surprises() > 0) std::exit(1);
  const double alone = run.zero_ms() - before;
  run.stand();
  const double stood = run.zero_ms() - before - alone - alone / in_seconds(kLeftAlone) * 6;
  return {{"ranks", ranks},
          {"stood_ms", stood},
          {"committed_ms", median(committed)},
          {"committed_most_ms", *std::max_element(committed.begin(), committed.end())},
          {"applied_ms", median(applied)},
          {"core_percent", alone / 10 / in_seconds(kLeftAlone)},
          {"sent_per_s", static_cast<double>(run.zero_sent() - sent) / in_seconds(kLeftAlone)}};
}

}  // namespace
}  // namespace footplate

int main(int argc, char** argv) {
  footplate::print_measured({argv + 1, argv + argc}, footplate::measure);
}
