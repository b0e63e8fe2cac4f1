#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "protocol/mutex.h"
#include "runtime/comm/mpi/host_watch.h"
#include "runtime/comm/mpi/mpi_session.h"
#include "runtime/rank/fence_watch.h"
#include "runtime/rank/host_folders.h"
#include "runtime/records/rank_records.h"

namespace footplate {

/// What a rank does besides in a run on several hosts: it watches the other hosts, and makes sure that of
/// hosts that have lost each other one side goes on.
class SeveralHosts {
 public:
  struct Parts {
    MpiSession& session;
    const HostFolders& folders;
    RankRecords& records;
    std::filesystem::path run_directory;
    int start = 1;
    std::string launcher_host;  ///< of `footplate run`
    double timeout_s = 0;       ///< comm.host_timeout_s; 0: no host is watched
    /// Ends this rank, resumable, as nobody can go on without what is lost. Any thread.
    std::function<void(const std::string& reason)> give_up;
  };

  /// Null where all ranks are on one host. Before control's thread is there.
  static std::unique_ptr<SeveralHosts> of(const Parts& parts);
  explicit SeveralHosts(const Parts& parts);

  /// Before this process writes what only the newest start may: FenceWatch::check(). Any thread.
  void check() const { fence_.check(); }

  /// Collective, at the start.
  void watch();
  /// A rank that has joined: by bells that know all others' (MpiWorld::take_bells()).
  void watch(std::unique_ptr<RemoteBells> bells);

  /// The ranks of the session are others now. `bells`: where one has joined. Returns where this one may go
  /// on. Control thread.
  void enter_world(std::unique_ptr<RemoteBells> bells);

  /// Which hosts of those ranks were declared lost, and why; empty: none. Any thread.
  std::string why_lost(const std::vector<int>& origins) const;

  /// At the end: nobody else ends mpirun's daemon on this host where that of mpirun is lost. A rank that was
  /// left out doesn't call it: mpirun ends all for a daemon that is gone, once it hears of it. Any thread.
  void end_daemon_if_orphaned() const;

 private:
  void note_hosts();
  /// The watch's thread.
  void note_lost(const std::string& host) EXCLUDES(mutex_);
  void tell_of_clocks(const std::map<std::string, double>& far) const;
  void take_term(const std::vector<int>& before, bool may_be_cut_off);

  const Parts parts_;
  FenceWatch fence_;
  std::vector<int> members_;  ///< by origin. Control thread
  std::atomic<bool> launcher_is_lost_{false};
  std::atomic<bool> declared_lost_{false};  ///< a host, since the newest change
  mutable Mutex mutex_;
  std::set<std::string> lost_hosts_ GUARDED_BY(mutex_);         ///< of this start
  std::map<int, std::string> host_of_rank_ GUARDED_BY(mutex_);  ///< by origin, also of those that are lost
  std::unique_ptr<HostWatch> watch_;
};

}  // namespace footplate
