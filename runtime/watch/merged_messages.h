#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace footplate {

/// What two ranks say to rank 0, in one message that says as much for both: the same words, or of two fences
/// the later one. Nothing: there is none. Encoded messages (messages.h).
std::optional<std::vector<std::uint8_t>> merged(std::span<const std::uint8_t> one,
                                                std::span<const std::uint8_t> other);

}  // namespace footplate
