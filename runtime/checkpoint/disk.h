#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <system_error>

namespace footplate {

/// The changes that a save makes to a disk, one function each, so that a test can fail or stop at any
/// of them. Reading isn't here: what was read is believed only after its hash. Each returns the
/// operating system's error, or none. Any thread.
class Disk {
 public:
  virtual ~Disk() = default;

  /// A folder of mode 0700; an error if the name is taken.
  virtual std::error_code make_folder(const std::filesystem::path& path) = 0;
  /// A new file of mode 0600, open for writing; an error if the name is taken, also by a symbolic link.
  virtual std::error_code create(const std::filesystem::path& path, int& descriptor) = 0;
  /// All of `bytes`, at the end of what was written before.
  virtual std::error_code write(int descriptor, std::span<const std::byte> bytes) = 0;
  /// Returns once the content is on the device (fsync).
  virtual std::error_code sync(int descriptor) = 0;
  virtual std::error_code close(int descriptor) = 0;
  /// The same for the names in a folder.
  virtual std::error_code sync_folder(const std::filesystem::path& path) = 0;
  /// A second name of a file, on the same file system; an error if the name is taken.
  virtual std::error_code link(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  /// Fails where `to` is a folder that isn't empty.
  virtual std::error_code rename(const std::filesystem::path& from, const std::filesystem::path& to) = 0;
  /// A file, or an empty folder.
  virtual std::error_code remove(const std::filesystem::path& path) = 0;
};

/// The operating system's.
class PosixDisk : public Disk {
 public:
  std::error_code make_folder(const std::filesystem::path& path) override;
  std::error_code create(const std::filesystem::path& path, int& descriptor) override;
  std::error_code write(int descriptor, std::span<const std::byte> bytes) override;
  std::error_code sync(int descriptor) override;
  std::error_code close(int descriptor) override;
  std::error_code sync_folder(const std::filesystem::path& path) override;
  std::error_code link(const std::filesystem::path& from, const std::filesystem::path& to) override;
  std::error_code rename(const std::filesystem::path& from, const std::filesystem::path& to) override;
  std::error_code remove(const std::filesystem::path& path) override;
};

}  // namespace footplate
