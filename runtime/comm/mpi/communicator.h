#pragma once

#include <mpi.h>

#include "runtime/comm/chunks.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/launch_queue.h"
#include "runtime/comm/ledger.h"
#include "runtime/control/progress.h"

namespace footplate {

/// Collectives over MPI in host memory: blocking calls on a thread of their own, which is the only
/// one that uses `comm`. In a world of one rank nothing reaches MPI.
///
/// Reductions need as much extra memory as a piece (set_chunk_elements) has, whatever the buffer's size.
/// Errors name this rank and the operation; after one, every later operation fails with it.
class MpiCommunicator : public Communicator {
 public:
  /// All of these outlive the communicator, and `comm` returns errors (MpiSession::data()).
  MpiCommunicator(MPI_Comm comm, Ledger& ledger, const Progress& progress);

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  void set_chunk_elements(std::int64_t elements) override { chunk_elements_ = elements; }
  std::unique_ptr<Work> all_reduce(Buffer buffer, ReduceOp op, const char* name) override;
  std::unique_ptr<Work> broadcast(Buffer buffer, int root, const char* name) override;
  std::unique_ptr<Work> all_gather(Buffer send, Buffer receive, const char* name) override;
  std::unique_ptr<Work> barrier(const char* name) override;

 private:
  Result<void> check(int code, const char* kind, const char* name) const;

  MPI_Comm comm_;
  int rank_ = 0;
  int world_size_ = 1;
  std::int64_t chunk_elements_ = kDefaultChunk;  // of the launching thread
  LaunchQueue queue_;                            // last: its thread uses the members above
};

}  // namespace footplate
