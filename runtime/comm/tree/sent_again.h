#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "runtime/comm/tree/tree_words.h"

namespace footplate {

/// A rank's own view of what rank 0 has sent to all: each once, in order, by whichever way it came.
class DownOrder {
 public:
  /// Whether this one is new here.
  bool add(tree::Down down) {
    if (down.number <= taken_) return false;
    return early_.emplace(down.number, std::move(down.bytes)).second;
  }
  /// The next one in order.
  std::optional<tree::Bytes> take() {
    if (early_.empty() || early_.begin()->first != taken_ + 1) return std::nullopt;
    ++taken_;
    return std::move(early_.extract(early_.begin()).mapped());
  }
  std::uint64_t taken() const { return taken_; }

 private:
  std::uint64_t taken_ = 0;
  std::map<std::uint64_t, tree::Bytes> early_;
};

/// Rank 0: what it has sent to all, as long as somebody may have to be sent it again.
class DownLog {
 public:
  tree::Down add(const tree::Bytes& bytes) {
    kept_.push_back(bytes);
    return {.layout = 0, .number = ++sent_, .bytes = bytes};
  }
  /// All have taken these.
  void forget_up_to(std::uint64_t number) {
    while (!kept_.empty() && first_kept() <= number) kept_.pop_front();
  }
  /// What came after `taken`.
  template <class Each>
  void for_each_after(std::uint64_t taken, const Each& each) const {
    for (std::uint64_t number = std::max(first_kept(), taken + 1); number <= sent_; ++number)
      each(tree::Down{0, number, kept_[number - first_kept()]});
  }

 private:
  std::uint64_t first_kept() const { return sent_ + 1 - kept_.size(); }

  std::uint64_t sent_ = 0;
  std::deque<tree::Bytes> kept_;  ///< the newest, without a gap
};

/// A rank: what it has said to rank 0 of late, to be said again where it was lost on its way.
class SaidLog {
 public:
  void add(tree::Bytes bytes) {
    ++said_;
    size_ += bytes.size();
    kept_.push_back(std::move(bytes));
    while (size_ > kMostBytes && kept_.size() > 1) forget_oldest();
  }
  /// What rank 0 has received is forgotten. How many it hasn't, and are forgotten as well.
  std::uint64_t forget_up_to(std::uint64_t received) {
    while (!kept_.empty() && first_kept() <= received) forget_oldest();
    return first_kept() - 1 - std::min(received, first_kept() - 1);
  }
  /// In order.
  const std::deque<tree::Bytes>& kept() const { return kept_; }

 private:
  /// What a rank says while one above it is silent is less by far.
  static constexpr std::size_t kMostBytes = 1 << 20;

  std::uint64_t first_kept() const { return said_ + 1 - kept_.size(); }
  void forget_oldest() {
    size_ -= kept_.front().size();
    kept_.pop_front();
  }

  std::uint64_t said_ = 0;
  std::size_t size_ = 0;  ///< of kept_, in bytes
  std::deque<tree::Bytes> kept_;
};

}  // namespace footplate
