#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/result.h"
#include "runtime/checkpoint/open_file.h"
#include "runtime/checkpoint/tensor.h"

namespace footplate {

// The safetensors format, and what is refused of it: docs/checkpoints.md.

/// Longest header that is written or read.
inline constexpr std::uint64_t kMaxHeaderBytes = 16u << 20;
/// Most dimensions of a tensor.
inline constexpr std::size_t kMaxDimensions = 16;
/// Longest name of a tensor, in bytes.
inline constexpr std::size_t kMaxNameBytes = 1024;

/// Where one tensor lies, as the header says: bytes [begin, end) of the data.
struct TensorEntry {
  TensorSpec spec;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::optional<SliceOf> slice_of = {};  ///< nothing: it is the whole tensor
};

/// A header that has passed every check.
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  ///< sorted by offset
  std::map<std::string, std::string> metadata;
  std::uint64_t data_bytes = 0;
};

/// The first bytes of a file that holds `tensors` in this order: length, header, padding to 8 bytes. Of what
/// slices are is in its metadata. Errors (failed): a name twice, a name, shape or size that the reader would
/// refuse.
Result<std::string> safetensors_header(std::span<const TensorView> tensors,
                                       std::map<std::string, std::string> metadata = {});

/// Reads a header's JSON text; `data_bytes` is what follows it in the file. Errors (failed) name the
/// tensor and the rule. Allocates in proportion to `text`, whatever the numbers in it say.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view text, std::uint64_t data_bytes);

/// A file that is read piece by piece, through one descriptor: no more than a block of it is in memory.
class SafetensorsFile {
 public:
  /// Errors (failed): can't be opened, not a regular file, a symbolic link, another user's, a length
  /// other than `expected_bytes` (unless that is 0), anything that parse_safetensors_header refuses.
  static Result<SafetensorsFile> open(const std::filesystem::path& path, std::uint64_t expected_bytes = 0);

  const std::filesystem::path& path() const { return path_; }
  const SafetensorsHeader& header() const { return header_; }

  /// What is read of a tensor: `block` are its bytes from `at` on, whole elements.
  using Take =
      std::function<void(const TensorEntry& entry, std::uint64_t at, std::span<const std::byte> block)>;
  /// Reads the file from its first byte to its last, and returns the SHA-256 of that. `take` may be empty;
  /// what it was given counts once the hash is the right one. Errors (failed): the device's; another header
  /// than the one that was checked.
  Result<std::string> read(const Take& take = {}) const;

 private:
  SafetensorsFile(OpenFile file, std::filesystem::path path)
      : file_(std::move(file)), path_(std::move(path)) {}
  OpenFile file_;
  std::filesystem::path path_;
  std::string start_;  ///< the bytes before the data
  SafetensorsHeader header_;
};

}  // namespace footplate
