#pragma once

#include <cstdint>
#include <string_view>

namespace footplate {

/// FNV-1a, 32 bits: the same number for the same text in every process of a run. Not against an adversary.
constexpr std::uint32_t fnv1a(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

}  // namespace footplate
