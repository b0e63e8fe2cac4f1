#include "console/lua/core/limits.h"

#include <cstdlib>

namespace footplate::lua {
namespace {

constexpr std::chrono::milliseconds kShortWait{5};

}  // namespace

void* CappedAllocator::allocate(void* self, void* block, std::size_t old_size, std::size_t new_size) {
  auto& allocator = *static_cast<CappedAllocator*>(self);
  // For a new block Lua passes the kind of object in old_size, not a size.
  const std::size_t held = block == nullptr ? 0 : old_size;
  if (new_size == 0) {
    std::free(block);
    allocator.used_ -= held;
    return nullptr;
  }
  if (new_size > held && new_size - held > allocator.cap_ - allocator.used_) return nullptr;
  void* moved = std::realloc(block, new_size);
  if (moved != nullptr) allocator.used_ = allocator.used_ - held + new_size;
  return moved;
}

void ChunkClock::start(std::chrono::duration<double> limit) {
  limit_ = std::chrono::duration_cast<Clock::duration>(limit);
  used_ = {};
  since_ = Clock::now();
  running_ = true;
}

void ChunkClock::pause() {
  const auto now = Clock::now();
  if (running_) used_ += now - since_;
  since_ = now;
  running_ = false;
}

void ChunkClock::resume() {
  const auto now = Clock::now();
  if (!running_ && now - since_ < kShortWait) used_ += now - since_;
  since_ = now;
  running_ = true;
}

bool ChunkClock::expired() const {
  return running_ && left() <= Clock::duration::zero();
}

ChunkClock::Clock::duration ChunkClock::left() const {
  return limit_ - used_ - (running_ ? Clock::now() - since_ : Clock::duration::zero());
}

}  // namespace footplate::lua
