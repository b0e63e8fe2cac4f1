#include "runtime/comm/tree/joint_messages.h"

#include <algorithm>
#include <utility>

namespace footplate {
namespace {

/// How long what some have said waits for the others.
constexpr std::chrono::milliseconds kHold{2};
/// Joint messages that a new one is compared with.
constexpr std::size_t kCompared = 16;
/// Told ones that are kept for those who are late.
constexpr std::size_t kKept = 16;

}  // namespace

JointMessages::Joint* JointMessages::find_partner(const tree::Said& said) {
  std::size_t compared = 0;
  for (auto it = joint_.rbegin(); it != joint_.rend() && compared < kCompared; ++it, ++compared) {
    if (it->waiting.intersects(said.by) || it->told.intersects(said.by)) return nullptr;
    const auto both = merge_(it->bytes, said.bytes);
    if (!both) continue;
    it->bytes = it->waiting.empty() ? said.bytes : *both;
    return &*it;
  }
  return nullptr;
}

void JointMessages::add(tree::Said said, Clock::time_point now) {
  Joint* joint = find_partner(said);
  if (joint == nullptr) joint = &joint_.emplace_back(Joint{std::move(said.bytes), {}, {}, {}});
  if (joint->waiting.empty()) joint->until = now + kHold;
  joint->waiting.add(said.by);
}

std::vector<tree::Said> JointMessages::take_due(Clock::time_point now) {
  std::size_t due = 0;
  for (std::size_t i = 0; i < joint_.size(); ++i)
    if (!joint_[i].waiting.empty() && (joint_[i].is_complete(ranks_) || joint_[i].until <= now)) due = i + 1;
  return take_up_to(due);
}

std::vector<tree::Said> JointMessages::take_all() {
  return take_up_to(joint_.size());
}

std::vector<tree::Said> JointMessages::take_up_to(std::size_t count) {
  std::vector<tree::Said> taken;
  for (std::size_t i = 0; i < count; ++i) {
    Joint& joint = joint_[i];
    if (joint.waiting.empty()) continue;
    joint.told.add(joint.waiting);
    taken.push_back({std::exchange(joint.waiting, RankSet()), joint.bytes});
  }
  std::erase_if(joint_, [&](const Joint& one) { return one.waiting.empty() && one.told.size() == ranks_; });
  while (joint_.size() > kKept && joint_.front().waiting.empty()) joint_.pop_front();
  return taken;
}

JointMessages::Clock::time_point JointMessages::next_due() const {
  auto next = Clock::time_point::max();
  for (const Joint& one : joint_)
    if (!one.waiting.empty()) next = std::min(next, one.until);
  return next;
}

}  // namespace footplate
