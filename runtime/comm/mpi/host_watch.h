#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "protocol/mutex.h"
#include "runtime/base/clock.h"
#include "runtime/base/thread.h"
#include "runtime/comm/mpi/mpi_session.h"
#include "runtime/comm/remote_bells.h"
#include "runtime/comm/wake_event.h"

namespace footplate {

/// Whether the other hosts of a run are there. A host that is off, or cut off, closes no connection: MPI
/// waits for it, and mpirun finds out after minutes. Each rank asks one rank of each other host every second,
/// over UDP, in a thread of its own that waits for nothing else: it answers while training hangs, and while
/// the control thread is in a recovery. A host of which nothing has come for the time-out is declared lost to
/// MPI, as each rank that is left does, and the ranks recover as after a kill. A host that has never been
/// heard, behind a firewall, isn't watched.
class HostWatch {
 public:
  using Clock = SteadyClock;
  /// What is done with a host that is lost. The watch's thread.
  struct Actions {
    std::function<void(const std::string& host)> lost;         ///< first
    std::function<bool(const MpiProcess& process)> tell_mpi;   ///< declare_lost()
    std::function<void(const std::string& host)> mpi_unaware;  ///< MPI can't be told of one of its ranks
  };
  /// `bells`: its own (exchange_bells).
  HostWatch(MpiSession& session, std::unique_ptr<RemoteBells> bells, std::chrono::duration<double> timeout,
            Actions actions);
  ~HostWatch();
  HostWatch(const HostWatch&) = delete;
  HostWatch& operator=(const HostWatch&) = delete;

  /// Others in the place of its bells, that know a rank which has joined as well. Any thread.
  void take_bells(std::unique_ptr<RemoteBells> bells) EXCLUDES(mutex_);

  /// The ranks that are in the run now. A host that has gone with all of its ranks after nearly the time-out
  /// was declared lost by another rank, and is lost for this one, too. Control thread.
  /// `hosts`, `processes`: by rank (MpiSession).
  void follow(const Membership& members, const std::vector<std::string>& hosts,
              const std::vector<MpiProcess>& processes);

 private:
  struct Host {
    std::vector<int> origins;
    std::vector<MpiProcess> processes;  ///< of its ranks, for MPI; empty where that can't be told
    std::size_t asked = 0;              ///< how often: one origin after the other
    Clock::time_point heard{};
    bool is_known = false;  ///< it has answered once
  };

  void watch();
  /// The watch's thread uses the bells alone.
  void change_bells() EXCLUDES(mutex_);
  void ask(Clock::time_point now) EXCLUDES(mutex_);
  void take(Clock::time_point now) EXCLUDES(mutex_);
  void declare(const std::string& name, const std::vector<MpiProcess>& processes);

  MpiSession& session_;
  std::unique_ptr<RemoteBells> bells_;
  const Clock::duration timeout_;
  const Actions actions_;
  const std::string own_host_;
  Mutex mutex_;
  std::map<std::string, Host> hosts_ GUARDED_BY(mutex_);  ///< the others
  std::unique_ptr<RemoteBells> next_bells_ GUARDED_BY(mutex_);
  WakeEvent wake_;
  std::atomic<bool> ends_{false};
  Thread thread_;
};

}  // namespace footplate
