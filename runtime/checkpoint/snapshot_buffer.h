#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include "protocol/result.h"

namespace footplate {

/// Memory for one copy of the state, kept from one save to the next: its pages are there, so that filling it
/// takes no longer than copying. One thread at a time.
class SnapshotBuffer {
 public:
  /// `memory_left`: bytes that the system has for it; nothing where that isn't known.
  using MemoryLeft = std::function<std::optional<std::int64_t>()>;
  explicit SnapshotBuffer(MemoryLeft memory_left) : memory_left_(std::move(memory_left)) {}
  SnapshotBuffer(const SnapshotBuffer&) = delete;
  SnapshotBuffer& operator=(const SnapshotBuffer&) = delete;
  ~SnapshotBuffer() { release(); }

  /// Room for so many bytes, with its pages, of which this touches each. Error (failed): the system hasn't
  /// that much memory left, with what it says; then there is no room at all.
  Result<void> reserve(std::size_t bytes);
  /// Gives the memory back.
  void release();

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  MemoryLeft memory_left_;
  std::span<std::byte> bytes_;
};

}  // namespace footplate
