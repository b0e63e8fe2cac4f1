#pragma once

#include <memory>

#include "runtime/base/fault.h"
#include "runtime/checkpoint/disk.h"

namespace footplate {

/// FOOTPLATE_FAULT=save_fail: the operating system's, without room for a byte.
class FullDisk final : public PosixDisk {
 public:
  std::error_code write(int /*descriptor*/, std::span<const std::byte> /*bytes*/) override {
    return std::make_error_code(std::errc::no_space_on_device);
  }
};

/// The operating system's, or a full one where a fault asks for that on this rank.
inline std::unique_ptr<Disk> open_disk(int rank) {
  if (fault("save_fail", rank)) return std::make_unique<FullDisk>();
  return std::make_unique<PosixDisk>();
}

}  // namespace footplate
