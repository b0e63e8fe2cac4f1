#include "runtime/watch/late_collectives.h"

#include <algorithm>
#include <utility>

namespace footplate {

std::optional<LateCollective> LateCollectives::handle(int source, const message::Overdue& overdue,
                                                      LateCollective::Clock::time_point now) {
  const std::uint64_t sequence = overdue.sequence;
  if (!overdue.over) {
    for (auto& [other, open] : open_) open.waiting.erase(source);  // it said no end of that one
    std::erase_if(open_, [](const auto& open) { return open.second.waiting.empty(); });
    Open& open = open_[sequence];
    LateCollective& late = open.late;
    late.setting = overdue.setting;
    late.limit_s = overdue.limit_s;
    late.kind = overdue.kind;
    late.name = overdue.name;
    late.step = overdue.step;
    late.elements = overdue.elements;
    late.bytes = overdue.bytes;
    open.waiting.insert(source);
    open.told.insert(source);
    return std::nullopt;
  }
  const auto found = open_.find(sequence);
  if (found == open_.end() || found->second.waiting.erase(source) == 0) return std::nullopt;
  LateCollective& late = found->second.late;
  const double took_s = overdue.took_s;
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
