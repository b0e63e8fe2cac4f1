#pragma once

#include <cstdint>

namespace footplate {

/// Collectives of fewer elements have a deadline of their own, whatever the phase; of others the longer one
/// of size and phase counts (runtime/comm/deadlines.h).
inline constexpr std::int64_t kSmallCollective = 10'000'000;
inline constexpr std::int64_t kLargeCollective = 100'000'000;

/// The setting with the deadline of a collective of so many elements.
constexpr const char* deadline_by_size(std::int64_t elements) {
  if (elements < kSmallCollective) return "comm.small_timeout_s";
  return elements < kLargeCollective ? "comm.medium_timeout_s" : "comm.large_timeout_s";
}

}  // namespace footplate
