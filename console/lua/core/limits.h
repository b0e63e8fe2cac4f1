#pragma once

#include <chrono>
#include <cstddef>

namespace footplate::lua {

/// What one chunk of a session may use. The console sends them in its hello; these are the defaults.
struct Limits {
  std::chrono::duration<double> chunk{10};       ///< running time; waiting for the run isn't counted
  std::chrono::duration<double> burst{0.05};     ///< processor time at normal priority (idle_priority.h)
  std::size_t memory_bytes = 64U * 1024 * 1024;  ///< of the whole Lua state
  std::size_t output_bytes = 1024U * 1024;       ///< printed by one chunk; the rest is dropped and said so
};

/// Lua's allocator with a cap. Past the cap a script gets Lua's "not enough memory" and the state stays
/// usable. Belongs to one Lua state; not thread-safe.
class CappedAllocator {
 public:
  explicit CappedAllocator(std::size_t cap_bytes) : cap_(cap_bytes) {}

  /// A lua_Alloc; `self` is the CappedAllocator.
  static void* allocate(void* self, void* block, std::size_t old_size, std::size_t new_size);

  std::size_t cap_bytes() const { return cap_; }
  std::size_t used_bytes() const { return used_; }

 private:
  std::size_t cap_;
  std::size_t used_ = 0;
};

/// Running time of a chunk: starts and stops like a stopwatch. Not thread-safe.
class ChunkClock {
 public:
  using Clock = std::chrono::steady_clock;

  void start(std::chrono::duration<double> limit);
  void pause();  ///< a wait begins; it counts against no limit
  /// It ends. One shorter than 5 ms is counted after all: a loop of waits that return at once is busy.
  void resume();
  bool expired() const;
  Clock::duration left() const;  ///< until it expires, unless it pauses; below 0: it has
  std::chrono::duration<double> used() const { return used_; }  ///< up to the last pause

 private:
  Clock::duration limit_{};
  Clock::duration used_{};
  Clock::time_point since_{};  ///< it runs, or has paused
  bool running_ = false;
};

/// Stops the clock as long as it lives.
class Waiting {
 public:
  explicit Waiting(ChunkClock& clock) : clock_(clock) { clock_.pause(); }
  ~Waiting() { clock_.resume(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  ChunkClock& clock_;
};

}  // namespace footplate::lua
