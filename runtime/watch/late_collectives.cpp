#include "runtime/watch/late_collectives.h"

#include <algorithm>
#include <utility>

namespace footplate {

std::optional<LateCollective> LateCollectives::handle(int source, const Json& message,
                                                      LateCollective::Clock::time_point now) {
  const auto sequence = message.value("sequence", std::uint64_t{0});
  if (!message.value("over", false)) {
    for (auto& [other, open] : open_) open.waiting.erase(source);  // it said no end of that one
    std::erase_if(open_, [](const auto& open) { return open.second.waiting.empty(); });
    Open& open = open_[sequence];
    LateCollective& late = open.late;
    late.setting = message.value("setting", "");
    late.limit_s = message.value("limit_s", 0.0);
    late.kind = message.value("kind", "");
    late.name = message.value("name", "");
    late.step = message.value("step", std::int64_t{0});
    late.elements = message.value("elements", std::int64_t{0});
    late.bytes = message.value("bytes", std::int64_t{0});
    open.waiting.insert(source);
    open.told.insert(source);
    return std::nullopt;
  }
  const auto found = open_.find(sequence);
  if (found == open_.end() || found->second.waiting.erase(source) == 0) return std::nullopt;
  LateCollective& late = found->second.late;
  const double took_s = message.value("took_s", 0.0);
  late.shortest_s = late.longest_s == 0 ? took_s : std::min(late.shortest_s, took_s);
  late.longest_s = std::max(late.longest_s, took_s);
  if (!found->second.waiting.empty()) return std::nullopt;
  late.by_itself = static_cast<int>(found->second.told.size()) == world_size_;
  late.ended = now;
  LateCollective ended = std::move(late);
  open_.erase(found);
  return ended;
}

void LateCollectives::found(std::uint64_t sequence, const std::vector<int>& ranks) {
  if (const auto open = open_.find(sequence); open != open_.end()) open->second.late.last = ranks;
}

}  // namespace footplate
