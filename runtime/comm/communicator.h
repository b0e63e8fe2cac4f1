#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "protocol/result.h"
#include "runtime/base/clock.h"

namespace footplate {

/// bfloat16 is for what is moved: only NCCL adds it up.
enum class DataType { float32, float64, int64, uint8, bfloat16 };
enum class ReduceOp { sum, min, max };

constexpr std::size_t size_of(DataType type) {
  switch (type) {
    case DataType::float32:
      return 4;
    case DataType::float64:
    case DataType::int64:
      return 8;
    case DataType::uint8:
      return 1;
    case DataType::bfloat16:
      return 2;
  }
  return 0;
}

/// Contiguous elements in the memory the backend works on (host for mpi and sim). Not owned: it has
/// to live until the Work made from it is done.
struct Buffer {
  void* data = nullptr;
  std::int64_t elements = 0;
  DataType type = DataType::float32;
};

inline std::byte* at(const Buffer& buffer, std::int64_t element) {
  return static_cast<std::byte*>(buffer.data) + static_cast<std::size_t>(element) * size_of(buffer.type);
}

/// One operation on its way. Any thread may look; one thread waits.
class Work {
 public:
  using Clock = SteadyClock;
  virtual ~Work() = default;
  virtual bool done() const = 0;
  /// Blocks until done, failed, or `deadline`. Errors: failed (with the rank, where known), lost (a rank is
  /// gone; world.h), timed_out (the operation goes on).
  virtual Result<void> wait(Clock::time_point deadline = Clock::time_point::max()) = 0;
};

/// Collectives among the ranks of one group. Every rank calls the same operations in the same order,
/// from one thread at a time; each returns at once and runs in that order on the backend's own thread
/// or stream. `name` says what it is for ("gradients", "eval sums") and stays in the ledger.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  /// By rank, numbers that are the same for ranks on one host; empty: all are on one. Not while rejoin()
  /// runs.
  virtual std::vector<int> host_numbers() const { return {}; }

  /// Reductions and broadcasts launched from here on run in pieces of so many elements (comm.chunk_elements;
  /// 0: by size, chunks.h), however many they are. All ranks change it between the same two operations.
  virtual void set_chunk_elements(std::int64_t elements) = 0;

  /// Large reductions launched from here on go in two levels, within each host and between the hosts
  /// (comm.hierarchy), where there are several hosts and the backend can. All ranks change it between the
  /// same two operations.
  virtual void set_two_levels(bool /*on*/) {}

  /// Operations launched from here on are compared with those of the other ranks (CheckedCommunicator), where
  /// the backend can. All ranks change it between the same two operations.
  virtual void set_checks(bool /*on*/) {}

  /// In place, element by element, the same bits on every rank.
  virtual std::unique_ptr<Work> all_reduce(Buffer buffer, ReduceOp op, const char* name) = 0;
  /// From `root`'s buffer into everyone else's.
  virtual std::unique_ptr<Work> broadcast(Buffer buffer, int root, const char* name) = 0;
  /// `send` of every rank, in rank order, into `receive` (world_size times as many elements).
  virtual std::unique_ptr<Work> all_gather(Buffer send, Buffer receive, const char* name) = 0;
  virtual std::unique_ptr<Work> barrier(const char* name) = 0;

  // Of a buffer that is cut among the ranks (shares.h), in place, stripe by stripe. Its elements are a
  // multiple of world_size.

  /// Each rank's share becomes the reduction of what all ranks have there. All else in its buffer is
  /// undefined then.
  virtual std::unique_ptr<Work> reduce_scatter(Buffer buffer, ReduceOp op, const char* name) = 0;
  /// Every rank gets the shares of all.
  virtual std::unique_ptr<Work> all_gather_shares(Buffer buffer, const char* name) = 0;
  /// Every rank also gets the share of the rank at this distance before it (comm/shares.h, rank_before()).
  /// All else in its buffer stays.
  virtual std::unique_ptr<Work> pass_shares(Buffer buffer, int distance, const char* name) = 0;

  /// After World::rebuild(), on every rank that is left: from here on rank, world size and operations are
  /// those of the world with this generation; until then operations fail (ErrorKind::lost), and they go on to
  /// fail where that world is broken already. They are numbered on from `sequence`, the same on all ranks.
  /// Errors: of a backend that has to find its ranks anew, as of an operation.
  virtual Result<void> rejoin(std::uint32_t /*generation*/, std::uint64_t /*sequence*/) { return {}; }
};

}  // namespace footplate
