#include "runtime/comm/sim/channel.h"

#include <algorithm>
#include <thread>

namespace footplate {

class SimChannel final : public MessageChannel {
 public:
  SimChannel(SimWorld& world, int rank)
      : world_(world),
        rank_(rank),
        random_(world.options_.seed * 1000003 + static_cast<std::uint64_t>(rank)) {}

  int rank() const override { return rank_; }
  int world_size() const override { return world_.world_size(); }

  void send(int to, const Json& body) override {
    // Through CBOR, as between processes: what doesn't survive it shows in tests on sim already.
    const auto bytes = to_cbor(body);
    std::uniform_int_distribution<std::int64_t> delay(0, world_.options_.max_delay.count());
    world_.deliver(rank_, to, from_cbor(bytes.data(), bytes.size()).value(),
                   std::chrono::microseconds(delay(random_)));
  }

  std::optional<Message> poll() override {
    world_.hold(rank_);
    auto& inbox = *world_.inboxes_[static_cast<std::size_t>(rank_)];
    const auto now = world_.options_.now();
    std::lock_guard lock(inbox.mutex);
    std::deque<SimWorld::Letter>* first = nullptr;
    for (auto& queue : inbox.from)
      if (!queue.empty() && queue.front().due <= now && (!first || queue.front().due < first->front().due))
        first = &queue;
    if (first == nullptr) return std::nullopt;
    Message message = std::move(first->front().message);
    first->pop_front();
    return message;
  }

  void wait(std::chrono::milliseconds at_most, int extra_fd) override {
    auto& inbox = *world_.inboxes_[static_cast<std::size_t>(rank_)];
    std::chrono::nanoseconds sleep = at_most;
    {
      const auto now = world_.options_.now();
      std::lock_guard lock(inbox.mutex);
      for (const auto& queue : inbox.from)
        if (!queue.empty()) sleep = std::min<std::chrono::nanoseconds>(sleep, queue.front().due - now);
    }
    inbox.wake.wait(sleep, extra_fd, -1);
    world_.hold(rank_);
  }

  void wake() override { world_.inboxes_[static_cast<std::size_t>(rank_)]->wake.wake(); }

 private:
  SimWorld& world_;
  int rank_;
  std::mt19937_64 random_;
};

SimWorld::SimWorld(int world_size, Options options) : options_(std::move(options)) {
  for (int rank = 0; rank < world_size; ++rank) {
    inboxes_.push_back(std::make_unique<Inbox>());
    inboxes_.back()->from.resize(static_cast<std::size_t>(world_size));
  }
}

std::unique_ptr<MessageChannel> SimWorld::channel(int rank) {
  return std::make_unique<SimChannel>(*this, rank);
}

void SimWorld::deliver(int from, int to, Json body, std::chrono::microseconds delay) {
  auto& inbox = *inboxes_[static_cast<std::size_t>(to)];
  {
    std::lock_guard lock(inbox.mutex);
    auto& queue = inbox.from[static_cast<std::size_t>(from)];
    auto due = options_.now() + delay;
    if (!queue.empty()) due = std::max(due, queue.back().due);
    queue.push_back({due, {from, std::move(body)}});
  }
  inbox.wake.wake();
}

void SimWorld::pause(int rank, Clock::time_point until) {
  auto& inbox = *inboxes_[static_cast<std::size_t>(rank)];
  std::lock_guard lock(inbox.mutex);
  inbox.paused_until = until;
}

void SimWorld::hold(int rank) {
  auto& inbox = *inboxes_[static_cast<std::size_t>(rank)];
  Clock::time_point until;
  {
    std::lock_guard lock(inbox.mutex);
    until = inbox.paused_until;
  }
  if (until > Clock::now()) std::this_thread::sleep_until(until);
}

}  // namespace footplate
