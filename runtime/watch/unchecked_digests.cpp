#include "runtime/watch/unchecked_digests.h"

#include <algorithm>

namespace footplate {

void UncheckedDigests::add(int rank, const message::Launched& launched) {
  if (waits_[static_cast<std::size_t>(rank)]) return;
  waits_[static_cast<std::size_t>(rank)] = true;
  queue_.push({rank, launched});
}

std::vector<UncheckedDigests::One> UncheckedDigests::take_up_to(std::uint64_t sequence) {
  std::vector<One> taken;
  for (; !queue_.empty() && queue_.top().launched.sequence <= sequence; queue_.pop()) {
    taken.push_back(queue_.top());
    waits_[static_cast<std::size_t>(queue_.top().rank)] = false;
  }
  std::sort(taken.begin(), taken.end(), [](const One& a, const One& b) { return a.rank < b.rank; });
  return taken;
}

}  // namespace footplate
