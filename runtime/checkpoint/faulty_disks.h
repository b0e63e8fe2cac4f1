#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>

#include "runtime/base/fault.h"
#include "runtime/checkpoint/disk.h"

namespace footplate {

/// FOOTPLATE_FAULT=save_fail: the operating system's, without room for a byte, for the first so many files.
class FullDisk final : public PosixDisk {
 public:
  explicit FullDisk(std::int64_t files = std::numeric_limits<std::int64_t>::max()) : left_(files) {}

  std::error_code write(int descriptor, std::span<const std::byte> bytes) override {
    if (left_ <= 0) return PosixDisk::write(descriptor, bytes);
    --left_;
    return std::make_error_code(std::errc::no_space_on_device);
  }

 private:
  std::int64_t left_;  ///< of each the first write fails
};

/// FOOTPLATE_FAULT=save_hold: the operating system's, where what is written to a checkpoint waits while the
/// run's folder has a file hold_saves.
class HeldDisk final : public PosixDisk {
 public:
  std::error_code create(const std::filesystem::path& path, int& descriptor) override {
    // RUN/checkpoints/BRANCH/CHECKPOINT/FILE
    hold_ = path.parent_path().parent_path().parent_path().parent_path() / "hold_saves";
    return PosixDisk::create(path, descriptor);
  }
  std::error_code write(int descriptor, std::span<const std::byte> bytes) override {
    for (std::error_code none; std::filesystem::exists(hold_, none);)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return PosixDisk::write(descriptor, bytes);
  }

 private:
  std::filesystem::path hold_;
};

/// The operating system's, or what a fault asks for on this rank.
inline std::unique_ptr<Disk> open_disk(int rank) {
  if (const auto full = fault("save_fail", rank))
    return full->get("times") ? std::make_unique<FullDisk>(*full->get("times"))
                              : std::make_unique<FullDisk>();
  if (fault("save_hold", rank)) return std::make_unique<HeldDisk>();
  return std::make_unique<PosixDisk>();
}

}  // namespace footplate
