#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/messages/enum_words.h"
#include "runtime/base/clock.h"
#include "runtime/base/progress.h"
#include "runtime/comm/communicator.h"

namespace footplate {

enum class Collective : std::uint8_t { all_reduce, broadcast, all_gather, barrier, reduce_scatter, sendrecv };
inline constexpr std::size_t kCollectives = 6;

template <>
struct EnumWords<Collective> {
  static constexpr std::array kAll{
      std::pair{Collective::all_reduce, std::string_view("all_reduce")},
      std::pair{Collective::broadcast, std::string_view("broadcast")},
      std::pair{Collective::all_gather, std::string_view("all_gather")},
      std::pair{Collective::barrier, std::string_view("barrier")},
      std::pair{Collective::reduce_scatter, std::string_view("reduce_scatter")},
      std::pair{Collective::sendrecv, std::string_view("sendrecv")},
  };
};
template <>
struct EnumWords<DataType> {
  static constexpr std::array kAll{
      std::pair{DataType::float32, std::string_view("float32")},
      std::pair{DataType::float64, std::string_view("float64")},
      std::pair{DataType::int64, std::string_view("int64")},
      std::pair{DataType::uint8, std::string_view("uint8")},
      std::pair{DataType::bfloat16, std::string_view("bfloat16")},
  };
};

/// One collective operation, from its launch to its end.
struct LedgerEntry {
  using Clock = SteadyClock;
  std::uint64_t sequence = 0;    ///< 1, 2, 3, … the same on all ranks
  std::uint32_t generation = 0;  ///< of the communicator: how often the world has changed
  Phase phase = Phase::starting;
  Collective kind = Collective::all_reduce;
  DataType type = DataType::float32;
  std::int64_t elements = 0;
  std::int64_t step = 0;
  std::int32_t variant = 0;      ///< the ReduceOp, or the root
  const char* name = "";         ///< what for; static storage
  std::uint64_t digest = 0;      ///< of all operations up to this one: equal on ranks that called the same
  Clock::time_point enqueued{};  ///< to about 4 ms
  Clock::time_point started{};   ///< epoch: it waits behind others
  Clock::time_point finished{};  ///< epoch: not yet

  bool is_started() const { return started != Clock::time_point{}; }
  bool is_finished() const { return finished != Clock::time_point{}; }
};

/// What a backend knows of an operation as it is launched.
inline LedgerEntry entry(Collective kind, const Buffer& buffer, const char* name, std::int32_t variant = 0) {
  LedgerEntry entry;
  entry.kind = kind;
  entry.type = buffer.type;
  entry.elements = buffer.elements;
  entry.variant = variant;
  entry.name = name;
  return entry;
}

/// How often operations of one kind and size ran, and how long.
struct CollectivePattern {
  Collective kind = Collective::all_reduce;
  std::int64_t at_least = 0;  ///< elements: a power of ten, below the next one; or 0
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  std::chrono::nanoseconds total{0};  ///< from each one's start to its end, waiting for other ranks included
  std::chrono::nanoseconds longest{0};
};

/// CollectivePattern::at_least for so many elements.
std::int64_t size_class(std::int64_t elements);

/// The last kSize collectives of this rank, and counts of all. Written by the launching thread (enqueue) and
/// by the communication thread (start, finish), which finishes in the order of the launches; any thread
/// reads. An operation costs two clock reads and some stores, 72 ns (scripts/bench collectives): no lock, no
/// allocation.
class Ledger {
 public:
  static constexpr std::size_t kSize = 1024;
  static constexpr std::size_t kDecades = 12;  ///< sizes of patterns: none, 1 to 9 elements, 10 to 99, …

  /// Launching thread. Of `entry` the fields from phase to name count. Returns its sequence.
  std::uint64_t enqueue(const LedgerEntry& entry);
  /// Launching thread, while nothing is under way: the next operation gets the number after `sequence`
  /// (not below newest()), and digests begin anew: the same on all ranks of a new world.
  void restart(std::uint64_t sequence, std::uint32_t generation);
  /// Communication thread, in the order of the sequences.
  void start(std::uint64_t sequence);
  void finish(std::uint64_t sequence);

  /// The oldest that isn't finished, else the newest; sequence 0 if there was none yet.
  LedgerEntry current() const;
  /// Nothing: not launched yet, or overwritten.
  std::optional<LedgerEntry> find(std::uint64_t sequence) const;
  /// Of the newest one; 0: none yet.
  std::uint64_t newest() const { return newest_.load(std::memory_order_acquire); }
  /// Those that have occurred, by kind and size.
  std::vector<CollectivePattern> patterns() const;
  /// The longest operation of fewer than `elements` (a power of ten) since this was called last. One thread;
  /// an operation that ends at that moment may be left out.
  std::chrono::nanoseconds take_longest(std::int64_t elements) const;

  /// How many were past their deadline, of this rank. Any thread; counted by who watches the ledger.
  std::int64_t overdue() const { return overdue_.load(std::memory_order_relaxed); }
  void count_overdue() const { overdue_.fetch_add(1, std::memory_order_relaxed); }

 private:
  using Ticks = LedgerEntry::Clock::rep;

  /// Fields are stored with release and loaded with acquire, so that a reader who finds the same sequence
  /// before and after has read one entry (a seqlock without fences).
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> sequence{0};  ///< 0: being written
    std::atomic<Ticks> started{0}, finished{0};
    std::atomic<Ticks> enqueued{0};
    std::atomic<std::int64_t> elements{0}, step{0};
    std::atomic<const char*> name{""};
    std::atomic<std::uint64_t> digest{0};
    std::atomic<std::uint32_t> generation{0};
    std::atomic<std::int32_t> variant{0};
    std::atomic<Phase> phase{Phase::starting};
    std::atomic<Collective> kind{Collective::all_reduce};
    std::atomic<DataType> type{DataType::float32};
  };
  /// Written by the communication thread alone.
  struct Count {
    std::atomic<std::int64_t> count{0}, bytes{0}, total_ns{0}, longest_ns{0};
    mutable std::atomic<std::int64_t> longest_of_late_ns{0};  ///< since it was taken
  };
  void count(const Slot& slot, Ticks took);

  std::array<Slot, kSize> ring_;
  std::atomic<std::uint64_t> newest_{0};
  std::atomic<std::uint64_t> finished_{0};  ///< all up to this one are
  std::uint64_t digest_ = 0;                ///< launching thread
  std::uint32_t generation_ = 1;            ///< launching thread
  std::array<std::array<Count, kDecades>, kCollectives> counts_;
  mutable std::atomic<std::int64_t> overdue_{0};
};

}  // namespace footplate
