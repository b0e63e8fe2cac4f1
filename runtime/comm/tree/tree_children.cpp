#include "runtime/comm/tree/tree_children.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace footplate {
namespace {

/// A rank that is new here may take so many times as long until its first sign.
constexpr int kFirstSign = 2;

}  // namespace

TreeChildren::TreeChildren(std::vector<TreeLayout::Child> children, milliseconds heartbeat,
                           milliseconds stalled, Clock::time_point now)
    : heartbeat_(heartbeat), stalled_(stalled), looked_(now), trust_from_(now) {
  for (TreeLayout::Child& child : children) {
    numbers_.push_back(child.rank);
    children_.push_back({std::move(child), now});
  }
}

TreeChildren::Child* TreeChildren::find(int rank) {
  const auto found = std::find_if(children_.begin(), children_.end(),
                                  [rank](const Child& one) { return one.place.rank == rank; });
  return found == children_.end() ? nullptr : &*found;
}

void TreeChildren::heard(int rank, Clock::time_point now) {
  Child* const child = find(rank);
  if (child == nullptr) return;
  child->heard = now;
  child->was_heard = true;
  child->told = false;
}

void TreeChildren::add_sign(int rank, const tree::Sign& sign, Clock::time_point now) {
  Child* const child = find(rank);
  if (child == nullptr) return;
  heard(rank, now);
  const auto was_silent = [&](int one) {
    return std::any_of(child->silent.begin(), child->silent.end(),
                       [one](const auto& silent) { return silent.first == one; });
  };
  for (const auto& [one, lasts] : sign.silent) news_ = news_ || !was_silent(one);
  child->taken = sign.taken;
  child->silent = sign.silent;
}

void TreeChildren::look(Clock::time_point now) {
  if (now - looked_ > stalled_ / 2 + heartbeat_) trust_from_ = now + heartbeat_;
  looked_ = now;
}

TreeChildren::milliseconds TreeChildren::patience_with(const Child& child) const {
  return child.was_heard ? stalled_ : stalled_ * kFirstSign;
}

bool TreeChildren::is_silent(const Child& child, Clock::time_point now) const {
  if (child.told) return true;  // until it is heard
  return now >= trust_from_ && now - child.heard > patience_with(child);
}

bool TreeChildren::take_news(Clock::time_point now) {
  bool news = std::exchange(news_, false);
  for (Child& child : children_)
    if (!child.told && is_silent(child, now)) news = child.told = true;
  return news;
}

Silences TreeChildren::silent(Clock::time_point now) const {
  Silences all;
  for (const Child& child : children_) {
    const auto since = std::chrono::duration_cast<milliseconds>(now - child.heard);
    if (is_silent(child, now)) all.emplace_back(child.place.rank, since);
    for (const auto& [rank, lasts] : child.silent) all.emplace_back(rank, lasts + since);
  }
  return all;
}

HeardOf TreeChildren::heard_of(Clock::time_point now) const {
  HeardOf heard;
  for (const Child& child : children_) heard.well.add(child.place.ranks);
  for (const Child& child : children_)
    if (!child.was_heard) heard.well.remove(child.place.rank);
  heard.silent = silent(now);
  for (const auto& [rank, lasts] : heard.silent) heard.well.remove(rank);
  return heard;
}

std::uint64_t TreeChildren::taken() const {
  auto least = std::numeric_limits<std::uint64_t>::max();
  for (const Child& child : children_) least = std::min(least, child.taken);
  return least;
}

TreeChildren::Clock::time_point TreeChildren::next_silence() const {
  auto next = Clock::time_point::max();
  for (const Child& child : children_)
    if (!child.told) next = std::min(next, child.heard + patience_with(child));
  return next == Clock::time_point::max() ? next : std::max(next, trust_from_) + milliseconds(1);
}

}  // namespace footplate
