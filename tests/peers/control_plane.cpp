// What rank 0 does for the others, in processor time: an order, a round of heartbeats, a turn of its control
// thread. The parts that do it are the real ones, and what comes and goes is encoded as on the way; what MPI
// costs is not in it. Arguments: the numbers of ranks. Prints a line of JSON.
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

#include "tests/peers/rank_zero_of_many.h"

namespace footplate {
namespace {

/// Messages handled before the clock is looked at, as ControlLoop does.
constexpr int kMessagesATurn = 1000;
/// Messages that each figure is of, at least.
constexpr int kMessages = 60000;
constexpr int kLeastRounds = 7;
constexpr int kTurns = 200;

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

/// The same from every rank, with a turn of the control thread after as many as it handles in one.
void deliver(RankZeroOfMany& zero, KeepingChannel& channel, const std::vector<Bytes>& from_ranks) {
  const auto turn = [&] {
    channel.forget_sent();
    zero.turn();
  };
  for (int rank = 0; rank < channel.world_size(); ++rank) {
    zero.deliver(rank, from_ranks[static_cast<std::size_t>(rank) % from_ranks.size()]);
    if (rank % kMessagesATurn == kMessagesATurn - 1) turn();
  }
  turn();
}

/// The order from the console to its report that all have applied it.
double order_ms(RankZeroOfMany& zero, KeepingChannel& channel, std::uint64_t number) {
  message::Applied applied;
  applied.order = number;
  applied.step = 101;
  applied.digest = "0123456789abcdef";
  const std::vector<std::vector<Bytes>> answers{{bytes_of(message::Prepared{number, ""})},
                                                {bytes_of(message::Fenced{number, 100})},
                                                {bytes_of(applied)}};
  const double start = now_ms();
  zero.submit();
  for (const auto& answer : answers) deliver(zero, channel, answer);
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
double beats_ms(RankZeroOfMany& zero, KeepingChannel& channel, Ledger& of_others, bool behind) {
  zero.set_now(zero.now() + ControlTimes().heartbeat);
  const message::Launched newest = launch(of_others);
  std::vector<Bytes> round;
  for (int rank = 0; rank < channel.world_size(); ++rank) round.push_back(beat_of(rank, zero.now(), newest));
  if (!behind) launch(zero.ledger());
  double start = now_ms();
  deliver(zero, channel, round);
  const double took = now_ms() - start;
  if (!behind) return took;
  launch(zero.ledger());
  start = now_ms();
  zero.deliver(0, round[0]);
  return took + now_ms() - start;
}

Json measure(int world_size) {
  KeepingChannel channel(world_size);
  RankZeroOfMany zero(world_size, channel);
  Ledger of_others;
  const int rounds = std::max(kLeastRounds, kMessages / world_size);
  std::vector<double> orders, level, behind, turns;
  for (int round = 0; round < rounds; ++round) {
    level.push_back(beats_ms(zero, channel, of_others, false));
    behind.push_back(beats_ms(zero, channel, of_others, true));
    orders.push_back(order_ms(zero, channel, static_cast<std::uint64_t>(round) + 1));
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
  footplate::print_measured({argv + 1, argv + argc}, footplate::measure);
}
