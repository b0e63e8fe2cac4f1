#pragma once

#include <mpi.h>

#include "protocol/mutex.h"
#include "runtime/base/huge_pages.h"
#include "runtime/base/progress.h"
#include "runtime/comm/chunks.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/launch_queue.h"
#include "runtime/comm/ledger.h"
#include "runtime/comm/mpi/mpi_session.h"
#include "runtime/comm/mpi/two_levels.h"

namespace footplate {

/// Collectives over MPI in host memory: blocking calls on a thread of their own, which is the only
/// one that uses the session's data(). In a world of one rank nothing reaches MPI.
///
/// Reductions need as much extra memory as a piece (set_chunk_elements) has, whatever the buffer's size;
/// those of shares 4 MiB, those in two levels what TwoLevels says. Errors name this rank and the operation;
/// after one, every later operation fails with it.
class MpiCommunicator : public Communicator {
 public:
  /// All of these outlive the communicator.
  MpiCommunicator(MpiSession& session, Ledger& ledger, const Progress& progress);

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  std::vector<int> host_numbers() const override { return hosts_; }
  void set_chunk_elements(std::int64_t elements) override { chunk_elements_ = elements; }
  void set_two_levels(bool on) override { two_levels_ = on; }
  std::unique_ptr<Work> all_reduce(Buffer buffer, ReduceOp op, const char* name) override;
  std::unique_ptr<Work> broadcast(Buffer buffer, int root, const char* name) override;
  std::unique_ptr<Work> all_gather(Buffer send, Buffer receive, const char* name) override;
  std::unique_ptr<Work> barrier(const char* name) override;
  std::unique_ptr<Work> reduce_scatter(Buffer buffer, ReduceOp op, const char* name) override;
  std::unique_ptr<Work> all_gather_shares(Buffer buffer, const char* name) override;
  std::unique_ptr<Work> pass_shares(Buffer buffer, int distance, const char* name) override;
  Result<void> rejoin(std::uint32_t generation, std::uint64_t sequence) override;

  /// For operations of another backend among these: the same thread, order, ledger and end.
  LaunchQueue& queue() { return queue_; }

  /// Operations fail (lost) until there is a new world, and rejoin(). Control thread.
  void close();
  /// The session has made a new world. Control thread.
  void offer();
  /// Whether the communication thread is out of MPI, within `at_most`. Control thread.
  bool wait_idle(std::chrono::milliseconds at_most) { return queue_.wait_idle(at_most); }

 private:
  Result<void> check(int code, const char* kind, const char* name) const;
  struct Exchange;
  int begin(Exchange& exchange, const Buffer& sent, int to, int from);
  int reduce_stripe(const Buffer& stripe, std::int64_t block, ReduceOp op);
  int gather_stripe(const Buffer& stripe, std::int64_t block);

  struct Offer {
    std::uint32_t generation = 0;  ///< 0: none
    MPI_Comm comm = MPI_COMM_NULL;
    int rank = 0;
    int world_size = 1;
    std::vector<int> hosts = {};  ///< of every rank, by rank
  };
  TwoLevels levels_of(const std::vector<int>& hosts);
  bool goes_in_two_levels(std::int64_t elements) const;

  MpiSession& session_;
  Mutex mutex_;
  Offer offer_ GUARDED_BY(mutex_);
  MPI_Comm comm_;
  int rank_ = 0;
  int world_size_ = 1;
  std::int64_t chunk_elements_ = kDefaultChunk;  // of the launching thread
  bool two_levels_ = false;                      // of the launching thread
  HugePages received_;                           // of the communication thread; touched at the first use
  std::vector<int> hosts_;                       // by rank
  TwoLevels levels_;                             // the same, and of rejoin()
  LaunchQueue queue_;                            // last: its thread uses the members above
};

}  // namespace footplate
