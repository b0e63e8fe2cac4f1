#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "protocol/result.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"

namespace footplate {

/// A checkpoint whose manifest, sizes and tensors' names have been checked, open for reading its tensors. No
/// more than a block of them is in memory.
class CheckpointReader {
 public:
  /// Errors (failed): anything that isn't exactly what was saved, as far as the files' headers show: also
  /// a tensor of which the files hold a part twice or not at all. The message names the file.
  static Result<CheckpointReader> open(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  /// Whole ones, whatever files their parts are in; sorted by name.
  const std::vector<TensorSpec>& tensors() const { return tensors_; }

  /// Whether this holds exactly the tensors of `expected`. The error names what is missing, what is too
  /// much, and where types or shapes differ.
  Result<void> matches(std::span<const TensorSpec> expected) const;

  /// What is read of a tensor: `block` are its bytes from `at` on, whole elements.
  using Take =
      std::function<void(const std::string& tensor, std::uint64_t at, std::span<const std::byte> block)>;
  /// Reads and verifies everything. `take` may be empty; what it was given counts only once this returns
  /// without an error. Errors (failed): a file that has other content than was saved, and which.
  Result<void> read(const Take& take = {}) const;

 private:
  Result<void> join_parts();

  std::filesystem::path path_;
  Manifest manifest_;
  std::vector<SafetensorsFile> files_;  ///< in the manifest's order
  std::vector<TensorSpec> tensors_;
};

/// The manifest alone: verified by its own hash, and against the folder's name. Error: failed.
Result<Manifest> read_manifest(const std::filesystem::path& folder, Retries retries = {});

/// The same, in a folder that holds its files, which aren't read, and no others; kReading. Error: failed.
Result<Manifest> read_listed_manifest(const std::filesystem::path& folder);

/// Reads and verifies everything. Errors as of CheckpointReader.
Result<Manifest> verify_checkpoint(const std::filesystem::path& folder);

}  // namespace footplate
