#include "runtime/comm/sim/sim_world.h"

#include <algorithm>

#include "protocol/mutex.h"
#include "runtime/comm/sim/sim_state.h"

namespace footplate {

int SimGeneration::rank_of(int origin) const {
  return static_cast<int>(std::find(origins.begin(), origins.end(), origin) - origins.begin());
}

SimWorld::State::State(int world_size, Options options) : options_(std::move(options)) {
  std::vector<int> all;
  for (int rank = 0; rank < world_size; ++rank) {
    all.push_back(rank);
    inboxes_.push_back(std::make_unique<Inbox>());
    inboxes_.back()->from.resize(static_cast<std::size_t>(world_size));
  }
  generation_ = std::make_shared<SimGeneration>(1, std::move(all));
}

void SimWorld::State::hold(int rank) {
  Inbox& inbox = this->inbox(rank);
  Clock::time_point until;
  {
    MutexLock lock(inbox.mutex);
    until = inbox.paused_until;
  }
  let_others_first();
  if (until > Clock::now()) sleep_until(until);
}

std::shared_ptr<SimGeneration> SimWorld::State::generation() const {
  MutexLock lock(mutex_);
  return generation_;
}

bool SimWorld::State::is_dead(int rank) const {
  MutexLock lock(mutex_);
  return dead_.contains(rank);
}

bool SimWorld::State::is_broken(int rank) const {
  MutexLock lock(mutex_);
  return broken_.contains(rank);
}

void SimWorld::State::kill(int rank) {
  MutexLock lock(mutex_);
  if (!dead_.insert(rank).second) return;
  trace("rank {} dies", rank);
  revoke(("rank " + std::to_string(rank) + " has died").c_str());
  renew_if_all();
}

void SimWorld::State::die_if_due(int rank, std::uint64_t SimOptions::Death::*when, std::uint64_t number) {
  for (const auto& death : options_.deaths)
    if (death.rank == rank && death.*when == number) kill(rank);
}

/// Everybody notices: what is under way fails.
void SimWorld::State::revoke(const char* why) {
  broken_.insert(generation_->origins.begin(), generation_->origins.end());
  generation_->meeting.fail_all({ErrorKind::lost, why});
  for (auto& inbox : inboxes_) inbox->alarm.ring();
}

void SimWorld::State::renew_if_all() {
  std::vector<int> left;
  for (const int origin : generation_->origins)
    if (!dead_.contains(origin)) left.push_back(origin);
  const bool all = std::all_of(left.begin(), left.end(),
                               [this](int origin) REQUIRES(mutex_) { return rebuilding_.contains(origin); });
  if (all && !left.empty()) {
    for (const int origin : left) broken_.erase(origin);
    rebuilding_.clear();
    trace("generation {}: ranks {}", generation_->number + 1, fmt::join(left, " "));
    generation_ = std::make_shared<SimGeneration>(generation_->number + 1, std::move(left));
  }
  changed_.notify_all();
}

std::shared_ptr<SimGeneration> SimWorld::State::rebuild(int rank) {
  MutexLock lock(mutex_);
  const std::uint32_t before = generation_->number;
  if (!dead_.contains(rank)) {
    rebuilding_.insert(rank);
    revoke("revoked by another rank");
    renew_if_all();
    changed_.wait(lock,
                  [&]() REQUIRES(mutex_) { return generation_->number != before || dead_.contains(rank); });
  }
  return dead_.contains(rank) ? nullptr : generation_;
}

namespace {

class SimMember final : public World {
 public:
  SimMember(std::shared_ptr<SimWorld::State> state, int origin, MessageChannel& channel)
      : state_(std::move(state)), origin_(origin), channel_(channel) {
    take(*state_->generation());
  }

  const Membership& members() const override { return members_; }
  bool broken() const override { return state_->is_broken(origin_); }
  Result<void> rebuild() override {
    const auto generation = state_->rebuild(origin_);
    if (!generation) return fail(ErrorKind::failed, "this rank has died");
    take(*generation);
    channel_.rebuilt();
    return {};
  }

 private:
  void take(const SimGeneration& generation) {
    members_ = {generation.number, generation.rank_of(origin_), generation.origins,
                static_cast<int>(generation.origins.size())};
  }

  std::shared_ptr<SimWorld::State> state_;
  int origin_;
  MessageChannel& channel_;
  Membership members_;
};

}  // namespace

SimWorld::SimWorld(int world_size, Options options)
    : state_(std::make_shared<State>(world_size, std::move(options))) {}
SimWorld::~SimWorld() = default;

int SimWorld::world_size() const {
  return state_->world_size();
}

std::unique_ptr<World> SimWorld::world(int rank, MessageChannel& channel) {
  return std::make_unique<SimMember>(state_, rank, channel);
}

void SimWorld::pause(int rank, Clock::time_point until) {
  trace("rank {} pauses", rank);
  State::Inbox& inbox = state_->inbox(rank);
  MutexLock lock(inbox.mutex);
  inbox.paused_until = until;
}

void SimWorld::hold(int rank) {
  state_->hold(rank);
}

void SimWorld::kill(int rank) {
  state_->kill(rank);
}

bool SimWorld::is_dead(int rank) const {
  return state_->is_dead(rank);
}

}  // namespace footplate
