#include "runtime/state/move_state.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>

namespace footplate {
namespace {

using Words = std::vector<std::int64_t>;

/// What travels at once.
constexpr std::size_t kWindow = std::size_t{16} << 20U;

std::size_t bytes_of_whole(const StateEntry& entry) {
  if (!entry.shard) return entry.bytes;
  std::size_t bytes = size_of(entry.type);
  for (const std::int64_t extent : entry.shard->shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

/// All tensors one behind the other, by name: each begins at a word.
class Layout {
 public:
  explicit Layout(const std::vector<StateEntry>& entries) {
    for (const StateEntry& entry : entries) begins_[entry.name] = bytes_of_whole(entry);
    for (auto& [name, bytes] : begins_) {
      const std::size_t words = (bytes + sizeof(std::int64_t) - 1) / sizeof(std::int64_t);
      bytes = std::exchange(end_, end_ + words * sizeof(std::int64_t));
    }
  }
  std::size_t end() const { return end_; }
  std::size_t begin_of(const StateEntry& entry) const {
    const auto found = begins_.find(entry.name);
    assert(found != begins_.end());
    const auto first = static_cast<std::size_t>(entry.shard ? entry.shard->first : 0);
    return found->second + first * size_of(entry.type);
  }

 private:
  std::map<std::string, std::size_t, std::less<>> begins_;
  std::size_t end_ = 0;
};

/// Calls `each(entry, at, bytes, place)` for what of the entries lies in [first, first + bytes of the
/// window): bytes of the entry from `at` on, which are at `place` of the window.
template <class Each>
void in_window(const std::vector<StateEntry>& entries, const Layout& layout, std::size_t first,
               std::size_t window, const Each& each) {
  for (const StateEntry& entry : entries) {
    const std::size_t begin = layout.begin_of(entry), end = begin + entry.bytes;
    const std::size_t from = std::max(begin, first), to = std::min(end, first + window);
    if (from < to) each(entry, from - begin, to - from, from - first);
  }
}

}  // namespace

/// Integers: what one rank gives, and nobody else, is the sum.
Result<void> move_state(Communicator& communicator, const std::vector<StateEntry>& given,
                        const std::vector<StateEntry>& wanted) {
  const Layout layout(wanted);
  Words words;
  for (std::size_t first = 0; first < layout.end(); first += kWindow) {
    const std::size_t window = std::min(kWindow, layout.end() - first);
    words.assign(window / sizeof(std::int64_t), 0);
    const std::span<std::byte> room = std::as_writable_bytes(std::span(words));
    in_window(given, layout, first, window,
              [&](const StateEntry& entry, std::size_t at, std::size_t bytes, std::size_t place) {
                entry.copy_to(room.subspan(place, bytes), at);
              });
    const Buffer buffer{words.data(), static_cast<std::int64_t>(words.size()), DataType::int64};
    if (auto sent = communicator.all_reduce(buffer, ReduceOp::sum, "moving state")->wait(); !sent)
      return sent;
    in_window(wanted, layout, first, window,
              [&](const StateEntry& entry, std::size_t at, std::size_t bytes, std::size_t place) {
                entry.take(room.subspan(place, bytes), at);
              });
  }
  return {};
}

}  // namespace footplate
