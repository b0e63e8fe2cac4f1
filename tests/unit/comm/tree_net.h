#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include "runtime/base/scheduler.h"
#include "runtime/comm/tree/tree_channel.h"

namespace footplate::testing {

/// Time that stands still until it is set: SteadyClock shows it on this thread as long as this lives.
class StandingClock final : public Scheduler {
 public:
  StandingClock() { set_current(this); }
  ~StandingClock() override { set_current(nullptr); }
  time_point now() const override { return now_; }
  void set(time_point now) { now_ = now; }

  bool wait(const void* /*condition*/, std::unique_lock<std::mutex>& /*lock*/,
            time_point /*until*/) override {
    return false;
  }
  void notify_all(const void* /*condition*/) override {}
  void sleep_until(time_point until) override { now_ = until; }
  void pass() override {}
  Task* add(std::string_view /*name*/) override { return nullptr; }
  void run(Task* /*task*/, const std::function<void()>& body) override { body(); }
  void join(const Task* /*task*/) override {}
  void note(std::string_view /*text*/) override {}

 private:
  time_point now_{std::chrono::seconds(1000)};
};

/// Ranks of a simulated network on one thread: each takes its turn when a message reaches it or it has slept
/// enough. A message takes a hop of fixed length and a random rest, and keeps its place behind the earlier
/// ones of its sender and receiver.
class TreeNet {
 public:
  using time_point = SteadyClock::time_point;
  using microseconds = std::chrono::microseconds;
  struct Options {
    int ranks = 2;
    std::uint64_t seed = 1;
    microseconds hop{100};
    microseconds most_delay{0};  ///< on top of it
    TreeOptions tree;
  };
  struct Rest {
    time_point until;  ///< it wakes then, unless something comes before
    microseconds took{
        0};  ///< what its turn took: it does nothing else meanwhile, and what it has sent leaves then
  };
  /// What a rank does when it wakes.
  using Turn = std::function<Rest(int rank)>;

  TreeNet(Options options, Turn turn)
      : options_(std::move(options)), turn_(std::move(turn)), random_(options_.seed) {
    ranks_.resize(static_cast<std::size_t>(options_.ranks));
    for (int rank = 0; rank < options_.ranks; ++rank) {
      at(rank).channel = make_tree_channel(std::make_unique<Direct>(*this, rank), options_.tree);
      wake(rank, clock_.now());
    }
  }

  MessageChannel& channel(int rank) { return *at(rank).channel; }
  time_point now() const { return clock_.now(); }
  std::mt19937_64& random() { return random_; }
  std::uint64_t sent_by(int rank) const { return ranks_[static_cast<std::size_t>(rank)].sent; }

  /// It takes a turn then, or before.
  void wake(int rank, time_point when) {
    One& one = at(rank);
    if (when >= one.wakes_at) return;
    one.wakes_at = when;
    events_.emplace(when, rank);
  }

  /// It takes no turn until then.
  void stop(int rank, time_point until) {
    at(rank).busy_until = until;
    wake(rank, until);
  }
  /// It takes no turn any more.
  void end(int rank) { at(rank).has_ended = true; }

  /// Takes all turns that are due before then.
  void run_until(time_point end) {
    while (!events_.empty() && events_.top().first <= end) {
      const auto [due, rank] = events_.top();
      events_.pop();
      One& one = at(rank);
      if (one.has_ended || due != one.wakes_at) continue;
      clock_.set(std::max(due, clock_.now()));
      if (one.busy_until > now()) {
        one.wakes_at = time_point::max();
        wake(rank, one.busy_until);
        continue;
      }
      take_turn(rank, one);
    }
    clock_.set(end);
  }

 private:
  struct Letter {
    time_point due;
    std::uint64_t number = 0;  ///< of those that are due at the same time the first one sent comes first
    Message message;
    bool operator>(const Letter& other) const {
      return std::pair(due, number) > std::pair(other.due, other.number);
    }
  };
  struct One {
    std::unique_ptr<MessageChannel> channel;
    std::priority_queue<Letter, std::vector<Letter>, std::greater<>> letters;
    std::map<int, time_point> last_due;  ///< by sender
    std::vector<std::pair<int, MessageBytes>> leaving;
    time_point wakes_at = time_point::max();
    time_point busy_until{};
    time_point waits_until{};
    bool has_ended = false;
    std::uint64_t sent = 0;
  };

  class Direct final : public MessageChannel {
   public:
    Direct(TreeNet& net, int rank) : net_(net), rank_(rank) {}
    int rank() const override { return rank_; }
    int world_size() const override { return net_.options_.ranks; }
    void send(int to, const MessageBytes& bytes) override {
      if (to == rank_)
        own_.push_back({rank_, *bytes});
      else
        net_.at(rank_).leaving.emplace_back(to, bytes);
    }
    std::optional<Message> poll() override {
      if (!own_.empty()) {
        Message message = std::move(own_.front());
        own_.pop_front();
        return message;
      }
      return net_.take(rank_);
    }
    void wait(std::chrono::milliseconds at_most, int /*extra_fd*/) override {
      net_.at(rank_).waits_until = net_.now() + at_most;
    }
    void wake() override {}

   private:
    TreeNet& net_;
    int rank_;
    std::deque<Message> own_;
  };

  One& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  void take_turn(int rank, One& one) {
    one.wakes_at = time_point::max();
    const Rest rest = turn_(rank);
    one.busy_until = now() + rest.took;
    one.waits_until = now();
    one.channel->wait(std::chrono::ceil<std::chrono::milliseconds>(rest.until - now()), -1);
    wake(rank, std::max(one.waits_until, one.busy_until));
    for (auto& [to, bytes] : std::exchange(one.leaving, {})) deliver(rank, to, bytes, one.busy_until);
    if (!one.letters.empty()) wake(rank, std::max(one.letters.top().due, one.busy_until));
  }

  void deliver(int from, int to, const MessageBytes& bytes, time_point leaves) {
    std::uniform_int_distribution<std::int64_t> delay(0, options_.most_delay.count());
    One& one = at(to);
    if (one.has_ended) return;
    time_point& last = one.last_due[from];
    last = std::max(last, leaves + options_.hop + microseconds(delay(random_)));
    one.letters.push({last, ++posted_, {from, *bytes}});
    ++at(from).sent;
    wake(to, std::max(last, one.busy_until));
  }

  std::optional<Message> take(int rank) {
    auto& letters = at(rank).letters;
    if (letters.empty() || letters.top().due > now()) return std::nullopt;
    Message message = letters.top().message;
    letters.pop();
    return message;
  }

  Options options_;
  StandingClock clock_;
  Turn turn_;
  std::mt19937_64 random_;
  std::uint64_t posted_ = 0;
  std::vector<One> ranks_;
  std::priority_queue<std::pair<time_point, int>, std::vector<std::pair<time_point, int>>, std::greater<>>
      events_;
};

}  // namespace footplate::testing
