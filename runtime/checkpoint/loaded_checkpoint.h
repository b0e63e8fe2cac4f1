#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/result.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/safetensors.h"

namespace footplate {

/// A checkpoint that has been read and verified as a whole: manifest, sizes, hashes, layout. Owns the
/// memory of its tensors.
class LoadedCheckpoint {
 public:
  /// Errors (failed): anything that isn't exactly what was saved; the message names the file.
  static Result<LoadedCheckpoint> read(const std::filesystem::path& folder);

  const std::filesystem::path& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }

  /// Whether this holds exactly the tensors of `expected`. The error names what is missing, what is too
  /// much, and where types or shapes differ.
  Result<void> matches(std::span<const TensorSpec> expected) const;

  /// The bytes of a tensor; nothing if there is none of that name. They live as long as this object.
  std::optional<std::span<const std::byte>> find(std::string_view name) const;

  /// All tensors.
  std::vector<TensorView> tensors() const;

 private:
  std::filesystem::path path_;
  Manifest manifest_;
  std::vector<SafetensorsFile> files_;
};

/// The manifest alone: verified by its own hash, and against the folder's name. Error: failed.
Result<Manifest> read_manifest(const std::filesystem::path& folder);

/// The same, in a folder that holds its files, which aren't read, and no others. Error: failed.
Result<Manifest> read_listed_manifest(const std::filesystem::path& folder);

/// Reads and hashes everything, a piece at a time. Errors as of LoadedCheckpoint::read.
Result<Manifest> verify_checkpoint(const std::filesystem::path& folder);

}  // namespace footplate
