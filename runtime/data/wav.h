#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// A recording of one channel.
struct Wav {
  std::int64_t rate = 0;  ///< samples a second
  std::vector<std::int16_t> samples;
};

/// A WAV file of one channel of 16-bit PCM. Errors (usage), each with the path: it can't be read, has another
/// format, is cut short, has a header that is damaged, or no samples.
Result<Wav> read_wav(const std::filesystem::path& path);

/// Appears under `path` when all of it is written. Errors (failed): the disk's.
Result<void> write_wav(const std::filesystem::path& path, std::span<const std::int16_t> samples,
                       std::int64_t rate);

}  // namespace footplate
