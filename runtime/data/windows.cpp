#include "runtime/data/windows.h"

namespace footplate {

Windows::Windows(const Recordings& recordings, std::int64_t length, bool held_out) : length_(length) {
  const auto size = static_cast<std::size_t>(length);
  for (std::size_t i = 0; i < recordings.count(); ++i) {
    if (recordings.is_held_out(i) != held_out) continue;
    const auto samples = recordings.samples(i);
    const std::size_t rest = samples.size() % size;
    for (std::size_t first = 0; first + size <= samples.size(); first += size)
      places_.push_back(samples.subspan(first, size + rest));
  }
}

std::int64_t Windows::shift(std::int64_t window, std::uint64_t bits) const {
  const std::size_t room = with_room(window).size() - static_cast<std::size_t>(length_);
  return static_cast<std::int64_t>(bits % (room + 1));
}

}  // namespace footplate
