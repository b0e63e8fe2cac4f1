#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "protocol/result.h"
#include "runtime/comm/mpi/declare_lost.h"
#include "runtime/comm/world.h"

namespace footplate {

/// MPI from its start to its end, and the communicators that everything else is handed. One per
/// process, owned by main(); it has to outlive every thread that uses a communicator of it.
///
/// Without mpirun it comes up as a world of one rank.
class MpiSession {
 public:
  /// Starts MPI with MPI_THREAD_MULTIPLE. Collective over all ranks that mpirun started. Errors:
  /// MPI doesn't start, or gives fewer threads.
  /// `joins`: the number of one that rank 0 has spawned (invitation.h), which is a world of its own until
  /// join(); -1: one of those that mpirun started.
  /// `groups`: by origin, what host_numbers() says instead of the ranks' hosts; empty: those.
  static Result<std::unique_ptr<MpiSession>> start(int joins = -1, std::vector<int> groups = {});

  /// The rank that mpirun has given this process, known before MPI starts; 0 without mpirun.
  static int launched_rank();

  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  /// Doesn't finalise: a process that leaves early must not wait for the others. See finish().
  ~MpiSession() = default;

  const Membership& members() const { return members_; }
  int rank() const { return members_.rank; }
  int world_size() const { return members_.world_size(); }
  int local_rank() const { return local_rank_; }                    ///< among the ranks of this host, by rank
  int local_size() const { return members_.local_ranks; }           ///< ranks on this host
  const std::vector<std::string>& hosts() const { return hosts_; }  ///< of every rank, by rank
  /// By rank: ranks with the same number share a host, for collectives in two levels (HostGroups).
  std::vector<int> host_numbers() const;
  /// Process ids by origin, of all who were there when somebody joined last.
  const std::map<int, std::int64_t>& pids() const { return pids_; }

  /// Of every rank, by rank, what MPI is told by; empty where this MPI can't be told (own_mpi_process()).
  std::vector<MpiProcess> processes() const;

  /// For the control thread's messages, and for the communication thread's collectives. Both are
  /// duplicates of one base communicator and return errors instead of ending the process. One thread
  /// each: whoever runs a collective on data() is the only one to use it.
  MPI_Comm control() const { return control_; }
  MPI_Comm data() const { return data_; }

  /// What an operation on a communicator of this session has returned. Whether it says that a rank is lost,
  /// or that another rank has revoked the communicator; lost() from then on. Any thread.
  bool tells_loss(int code);
  /// Something that isn't MPI's has failed for good, and the ranks have to find together anew as after a
  /// loss: lost() from then on. Any thread.
  void give_up();
  bool lost() const { return lost_.load(std::memory_order_acquire); }
  /// Called once a loss is noticed, by whichever thread does. Before other threads use the session.
  void on_loss(std::function<void()> call) { on_loss_ = std::move(call); }

  /// Every operation under way on every rank returns an error. Control thread.
  void revoke();
  /// After revoke(), with no thread in MPI but this: a world of those who are left. Waits for all who live.
  /// Errors: this MPI can't do it, or failed.
  Result<void> shrink();

  /// Every rank: a world with the joining rank as its last rank. `joining` is rank 0's alone: the
  /// communicator of the two, where the joining rank has been welcomed; MPI_COMM_NULL: come to nothing. The
  /// same outcome on all ranks. Error: lost; the session is lost() then.
  Result<void> grow(MPI_Comm joining);
  /// The same, for the joining rank. Its communicator with rank 0 is host().
  Result<void> join();
  MPI_Comm host() const { return host_; }

  /// Frees the communicators and finalises MPI; waits for the other ranks to do the same. Once, by
  /// the thread that started the session, after all threads using it have ended. Where ranks were lost
  /// MPI can't be finalised for certain: false once the others are here, too, and the process has to _exit().
  bool finish();

  /// Ends every rank of the run at once, with `code`. Any thread.
  [[noreturn]] static void abort(int code);

 private:
  /// One base, and the two that are used, duplicates of it.
  struct Comms {
    MPI_Comm base = MPI_COMM_NULL;
    MPI_Comm control = MPI_COMM_NULL;
    MPI_Comm data = MPI_COMM_NULL;
  };
  /// Who is in a world that has grown.
  struct Roster {
    Membership members;
    std::map<int, std::string> hosts;
    std::map<int, std::int64_t> pids;
    std::map<int, MpiProcess> processes;
  };

  MpiSession() = default;
  static Result<Comms> derive(MPI_Comm base);
  Result<Roster> introduce(MPI_Comm base) const;
  Result<void> meet_host();
  void take(const Comms& comms, Roster roster);
  void find_place();
  void await_all_at_end();

  Membership members_;
  int local_rank_ = 0;
  std::vector<std::string> hosts_;
  std::map<int, std::string> hosts_by_origin_;
  std::vector<int> groups_;
  std::map<int, std::int64_t> pids_;
  std::map<int, MpiProcess> processes_;  ///< by origin; empty where MPI can't be told of a loss
  std::atomic<bool> lost_{false};
  std::function<void()> on_loss_;
  MPI_Comm base_ = MPI_COMM_NULL;
  MPI_Comm control_ = MPI_COMM_NULL;
  MPI_Comm data_ = MPI_COMM_NULL;
  MPI_Comm host_ = MPI_COMM_NULL;
};

/// What MPI says about `code`, for messages.
std::string mpi_error_text(int code);

}  // namespace footplate
