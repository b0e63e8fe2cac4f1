#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/comm/communicator.h"
#include "runtime/comm/host_groups.h"

namespace footplate {

/// Collectives of ranks on several hosts in two levels: within each host, and between the hosts. For each
/// host a block of a buffer crosses the network once in each direction, and the ranks of a host share that
/// work (HostGroups).
///
/// A buffer is worked on in pieces. While one crosses the network, the next one is summed up within the
/// hosts. Each sum is made by one rank, in one order, and handed round: the same bits on every rank. In
/// place. Needs as much extra memory as two to four pieces have: of floats 4 MiB with 4 ranks, 64 MiB with
/// many. Calls are the same on all ranks, in the same order, on the thread that uses `comm`. They return
/// MPI's code of what failed first.
class TwoLevels {
 public:
  /// `failed` hears the first code of an operation that isn't success, at once: what was begun with other
  /// ranks ends only when the communicator is revoked.
  TwoLevels(MPI_Comm comm, HostGroups groups, std::function<void(int)> failed)
      : comm_(comm), groups_(std::move(groups)), failed_(std::move(failed)) {}

  const HostGroups& groups() const { return groups_; }

  int all_reduce(const Buffer& buffer, ReduceOp op) const;
  /// Of a buffer that is cut among the ranks (shares.h).
  int reduce_scatter(const Buffer& buffer, ReduceOp op) const;
  int all_gather_shares(const Buffer& buffer) const;

 private:
  MPI_Comm comm_;
  HostGroups groups_;
  std::function<void(int)> failed_;
};

}  // namespace footplate
