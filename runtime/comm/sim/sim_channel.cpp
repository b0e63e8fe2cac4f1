#include <algorithm>
#include <random>

#include "protocol/mutex.h"
#include "runtime/comm/sim/message_word_json.h"
#include "runtime/comm/sim/sim_state.h"

namespace footplate {
namespace {

/// FNV-1a.
std::uint32_t digest_of(const std::vector<std::uint8_t>& bytes) {
  std::uint32_t digest = 2166136261U;
  for (const std::uint8_t byte : bytes) digest = (digest ^ byte) * 16777619U;
  return digest;
}

/// A message without what differs from process to process.
Json repeatable(Json body) {
  body.erase("pid");
  return body;
}

class SimChannel final : public MessageChannel {
 public:
  SimChannel(std::shared_ptr<SimWorld::State> state, int origin)
      : state_(std::move(state)),
        origin_(origin),
        inbox_(state_->inbox(origin)),
        random_(state_->options().seed * 1000003 + static_cast<std::uint64_t>(origin)) {
    rebuilt();
  }

  int rank() const override { return generation_->rank_of(origin_); }
  int world_size() const override { return static_cast<int>(generation_->origins.size()); }
  void rebuilt() override { generation_ = state_->generation(); }

  void send(int to, const MessageBytes& message) override {
    let_others_first();
    state_->die_if_due(origin_, &SimOptions::Death::message, ++sent_);
    std::uniform_int_distribution<std::int64_t> delay(0, state_->options().max_delay.count());
    const int origin = generation_->origins[static_cast<std::size_t>(to)];
    if (Scheduler::current() != nullptr) trace_sending(origin, *message);
    state_->deliver(*generation_, origin_, origin, *message,
                    std::chrono::microseconds(origin == origin_ ? 0 : delay(random_)));
  }

  std::optional<Message> poll() override {
    state_->hold(origin_);
    const bool broken = state_->is_broken(origin_);
    const auto now = state_->options().now();
    MutexLock lock(inbox_.mutex);
    std::deque<SimWorld::State::Letter>* first = nullptr;
    for (std::size_t from = 0; from < inbox_.from.size(); ++from) {
      auto& queue = inbox_.from[from];
      const bool own = static_cast<int>(from) == origin_;  // as over MPI: nothing to oneself is lost
      while (!own && !queue.empty() && queue.front().generation < generation_->number) queue.pop_front();
      if (queue.empty() || queue.front().generation > generation_->number || queue.front().due > now)
        continue;
      if (broken && !own) continue;
      if (!first || queue.front().due < first->front().due) first = &queue;
    }
    if (first == nullptr) return std::nullopt;
    Message message = std::move(first->front().message);
    first->pop_front();
    trace("rank {} takes one of {}", origin_, message.source);
    return message;
  }

  void wait(std::chrono::milliseconds at_most, int extra_fd) override {
    std::chrono::nanoseconds sleep = at_most;
    {
      const auto now = state_->options().now();
      MutexLock lock(inbox_.mutex);
      for (const auto& queue : inbox_.from)
        if (!queue.empty())
          sleep = std::clamp<std::chrono::nanoseconds>(queue.front().due - now, std::chrono::nanoseconds(0),
                                                       sleep);
    }
    inbox_.alarm.sleep(sleep, extra_fd);
    state_->hold(origin_);
  }

  void wake() override { inbox_.alarm.ring(); }

 private:
  void trace_sending(int to, const std::vector<std::uint8_t>& bytes) const {
    const auto body = from_cbor(bytes.data(), bytes.size());
    if (!body) return trace("rank {} to {}: passed on", origin_, to);  // comm/tree's
    trace("rank {} to {}: {} #{:08x}", origin_, to, word_of(*body),
          digest_of(body->contains("pid") ? to_cbor(repeatable(*body)) : bytes));
  }

  std::shared_ptr<SimWorld::State> state_;
  int origin_;
  SimWorld::State::Inbox& inbox_;
  std::mt19937_64 random_;
  std::uint64_t sent_ = 0;
  std::shared_ptr<SimGeneration> generation_;
};

}  // namespace

std::unique_ptr<MessageChannel> SimWorld::channel(int rank) {
  return std::make_unique<SimChannel>(state_, rank);
}

void SimAlarm::ring() {
  if (Scheduler::current() == nullptr) return event_.wake();
  const MutexLock lock(mutex_);
  is_rung_ = true;
  rung_.notify_all();
}

void SimAlarm::sleep(std::chrono::nanoseconds at_most, int fd) {
  if (Scheduler::current() == nullptr) return static_cast<void>(event_.wait(at_most, fd, -1));
  MutexLock lock(mutex_);
  rung_.wait_for(lock, at_most, [this]() REQUIRES(mutex_) { return is_rung_; });
  is_rung_ = false;
}

void SimWorld::State::deliver(const SimGeneration& generation, int from, int to,
                              std::vector<std::uint8_t> bytes, std::chrono::microseconds delay) {
  if (is_dead(from) || is_dead(to)) return;
  Inbox& inbox = this->inbox(to);
  {
    MutexLock lock(inbox.mutex);
    auto& queue = inbox.from[static_cast<std::size_t>(from)];
    auto due = options_.now() + delay;
    if (!queue.empty()) due = std::max(due, queue.back().due);
    queue.push_back({due, generation.number, {generation.rank_of(from), std::move(bytes)}});
  }
  inbox.alarm.ring();
}

}  // namespace footplate
