#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "console/client/runs/run_record.h"
#include "protocol/arrival.h"
#include "run_files/private_folders.h"

namespace footplate {

/// A rank on its way to the first step, as the files of the start and the process table show it.
struct RankStart {
  int rank = 0;
  std::optional<Arrival> arrival;  ///< nothing: its process hasn't begun, as far as one can tell
  char process = '?';  ///< state as in proc(5): R S D T …; '-' for one that has ended, '?' for one unknown
};

/// Where the ranks of a start leave their arrival files: the private folder of this host, and one in the run
/// directory for those of other hosts.
std::vector<std::filesystem::path> start_notes(const PrivateFolders& folders,
                                               const std::filesystem::path& run_directory);

/// The last whole line of each rank's arrival file, for ranks 0 to `ranks` - 1; it is in one of `folders`.
std::vector<RankStart> read_starts(const std::vector<std::filesystem::path>& folders, int ranks);

/// The ranks that the others wait for: those at the earliest place. Empty where all are at the same one.
std::vector<RankStart> ranks_behind(const std::vector<RankStart>& ranks);

/// "rank 1 of 4 has not arrived within 60 s (comm.init_timeout_s): host n7, pid 4242, before MPI starts, its
/// process is stopped; check: kill -CONT 4242". `within` tells the bound, and is empty for a rank that has
/// ended.
std::string explain_missing(const std::vector<RankStart>& ranks, const std::string& within);

/// What is known of a rank whose run is starting.
struct StartingRank {
  int rank = 0;
  std::string host;        ///< empty: its process hasn't begun
  std::optional<int> pid;  ///< nothing: the same
  std::string phase;       ///< for people
};

/// A live run that has no console yet.
struct StartStatus {
  std::string note;  ///< how long it has been starting, and whom it waits for; or when the next start is due
  std::vector<StartingRank> ranks;
};
/// Whether `run` is one: live, and its ranks aren't ready.
bool is_starting(const RunRecord& run);
/// From run.json and the files of the start.
StartStatus start_status(const RunRecord& run);

/// Watches one start until its ranks are ready. What bounds it is the time for which ranks wait for others,
/// and before they have met once the time since the launch: a long load on all ranks isn't cut off. One
/// thread.
class StartWatch {
 public:
  using Clock = std::chrono::steady_clock;

  StartWatch(std::filesystem::path directory, const PrivateFolders& folders, int ranks, double timeout_s);

  /// Looks at the start: why it has failed, once it has. Cheap once the ranks are ready.
  std::optional<std::string> look(Clock::time_point now);

  /// A line for people where the start takes long, once; else empty.
  std::string patience(Clock::time_point now);

  /// The start is over before its ranks were ready: the rank that was lost, where one is known. Nothing where
  /// all refused to start.
  std::optional<std::string> lost_rank() const;

 private:
  bool is_ready();
  bool has_result() const;
  std::optional<Clock::time_point> waiting_since(const std::vector<RankStart>& ranks, Clock::time_point now);
  bool is_lost(const std::vector<RankStart>& ranks, Clock::time_point now);
  std::string bound() const;

  const std::filesystem::path directory_;
  const std::vector<std::filesystem::path> notes_;
  const int ranks_;
  const double timeout_s_;
  const Clock::time_point launched_ = Clock::now();
  std::map<int, std::pair<int, Clock::time_point>>
      places_;  ///< of each rank: stage, and when it was first seen
  std::optional<Clock::time_point> lost_at_;
  bool ready_ = false;
  bool has_spoken_ = false;
};

}  // namespace footplate
