#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/result.h"
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
};

/// A header that has passed every check.
struct SafetensorsHeader {
  std::vector<TensorEntry> tensors;  ///< sorted by offset
  std::map<std::string, std::string> metadata;
  std::uint64_t data_bytes = 0;
};

/// The first bytes of a file that holds `tensors` in this order: length, header, padding to 8 bytes.
/// Errors (failed): a name twice, a name, shape or size that the reader would refuse.
Result<std::string> safetensors_header(std::span<const TensorView> tensors,
                                       const std::map<std::string, std::string>& metadata = {});

/// Reads a header's JSON text; `data_bytes` is what follows it in the file. Errors (failed) name the
/// tensor and the rule. Allocates in proportion to `text`, whatever the numbers in it say.
Result<SafetensorsHeader> parse_safetensors_header(std::string_view text, std::uint64_t data_bytes);

/// The header of a file, whose data isn't read. Errors as of SafetensorsFile::read.
Result<SafetensorsHeader> read_safetensors_header(const std::filesystem::path& path);

/// A whole file in memory, read through one descriptor and checked before the memory was taken.
class SafetensorsFile {
 public:
  /// Errors (failed): can't be opened, not a regular file, a symbolic link, another user's, a length
  /// other than `expected_bytes` (unless that is 0), anything that parse_safetensors_header refuses.
  static Result<SafetensorsFile> read(const std::filesystem::path& path, std::uint64_t expected_bytes = 0);

  const SafetensorsHeader& header() const { return header_; }
  /// The file's bytes from first to last: what its hash is taken over.
  std::span<const std::byte> bytes() const { return {content_.get(), size_}; }
  /// The bytes of one tensor. They live as long as this object.
  std::span<const std::byte> data(const TensorEntry& entry) const;

 private:
  SafetensorsHeader header_;
  std::unique_ptr<std::byte[]> content_;
  std::size_t size_ = 0;
  std::size_t data_begin_ = 0;
};

}  // namespace footplate
