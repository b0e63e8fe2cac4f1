#include "runtime/watch/merged_messages.h"

#include <algorithm>

#include "runtime/watch/messages.h"

namespace footplate {
namespace {

std::optional<message::Fenced> fence_of(std::span<const std::uint8_t> bytes) {
  const auto message = message::decoded(bytes);
  if (!message) return std::nullopt;
  const auto* to_rank_zero = std::get_if<message::ToRankZero>(&*message);
  const auto* fenced = to_rank_zero != nullptr ? std::get_if<message::Fenced>(to_rank_zero) : nullptr;
  return fenced != nullptr ? std::optional(*fenced) : std::nullopt;
}

}  // namespace

std::optional<std::vector<std::uint8_t>> merged(std::span<const std::uint8_t> one,
                                                std::span<const std::uint8_t> other) {
  if (std::ranges::equal(one, other)) return std::vector<std::uint8_t>(one.begin(), one.end());
  constexpr std::size_t kFence = 64;  // more bytes than one has
  if (one.size() > kFence || other.size() > kFence) return std::nullopt;
  const auto first = fence_of(one);
  const auto second = first ? fence_of(other) : std::nullopt;
  if (!second || first->ticket != second->ticket) return std::nullopt;
  const auto later = first->step < second->step ? other : one;
  return std::vector<std::uint8_t>(later.begin(), later.end());
}

}  // namespace footplate
