#pragma once

#include <mpi.h>

#include <memory>
#include <string>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// MPI from its start to its end, and the communicators that everything else is handed. One per
/// process, owned by main(); it has to outlive every thread that uses a communicator of it.
///
/// Without mpirun it comes up as a world of one rank.
class MpiSession {
 public:
  /// Starts MPI with MPI_THREAD_MULTIPLE. Collective over all ranks that mpirun started. Errors:
  /// MPI doesn't start, or gives fewer threads.
  static Result<std::unique_ptr<MpiSession>> start();

  /// The rank that mpirun has given this process, known before MPI starts; 0 without mpirun.
  static int launched_rank();

  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  /// Doesn't finalise: a process that leaves early must not wait for the others. See finish().
  ~MpiSession() = default;

  int rank() const { return rank_; }
  int world_size() const { return static_cast<int>(hosts_.size()); }
  int local_rank() const { return local_rank_; }                    ///< among the ranks of this host, by rank
  int local_size() const { return local_size_; }                    ///< ranks on this host
  const std::vector<std::string>& hosts() const { return hosts_; }  ///< of every rank, by rank

  /// For the control thread's messages, and for the communication thread's collectives. Both are
  /// duplicates of one base communicator and return errors instead of ending the process. One thread
  /// each: whoever runs a collective on data() is the only one to use it.
  MPI_Comm control() const { return control_; }
  MPI_Comm data() const { return data_; }

  /// Frees the communicators and finalises MPI; waits for the other ranks to do the same. Once, by
  /// the thread that started the session, after all threads using it have ended.
  void finish();

  /// Ends every rank of the run at once, with `code`. Any thread.
  [[noreturn]] static void abort(int code);

 private:
  MpiSession() = default;

  int rank_ = 0;
  int local_rank_ = 0;
  int local_size_ = 1;
  std::vector<std::string> hosts_;
  MPI_Comm base_ = MPI_COMM_NULL;
  MPI_Comm control_ = MPI_COMM_NULL;
  MPI_Comm data_ = MPI_COMM_NULL;
};

/// What MPI says about `code`, for messages.
std::string mpi_error_text(int code);

}  // namespace footplate
