#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "console/client/link/run_connection.h"
#include "console/launch/start/host_probe.h"
#include "console/launch/start/plan.h"
#include "protocol/messages/order_report.h"
#include "run_files/private_folders.h"
#include "run_files/world_terms.h"

namespace footplate {

/// After the loss of a host the ranks of the others go on, and this orders run.restart where that is better
/// than to go on for good: where a spare host answers, or where mpirun will end the run. mpirun can't tell
/// the lost host's daemon what it tells all daemons, of a rank that dies or joins, and ends all ranks once
/// TCP gives up, minutes later. In a Slurm job its daemons are a step, which Slurm ends once it has found out
/// that the host is lost. The ranks save and end at one step, and the next start takes the hosts that
/// answer. One thread, the main one; nothing here waits longer than kConsoleTakes.
class PlannedRestart {
 public:
  using Clock = std::chrono::steady_clock;

  /// For one start, on plan.hosts. `before`: so many have been planned already; a host that is there and yet
  /// lost again and again would have the run started again for ever, so each waits ten minutes longer than
  /// the one before, an hour at most. `say`: for people.
  PlannedRestart(const RunPlan& plan, const PrivateFolders& folders, int start, int before,
                 std::function<void(const std::string&)> say);

  /// Looks at the run's folder now and then, and at what is under way.
  void look(Clock::time_point now);

  bool is_ordered() const { return is_ordered_; }

  /// Of this start. mpirun doesn't end by itself then. Reads the run's folder.
  bool has_lost_a_host();

 private:
  void look_at_terms();
  void look_for_spare_hosts(Clock::time_point now);
  void order(const std::string& reason, Clock::time_point now);
  void look_at_answer(Clock::time_point now);
  bool is_paused() const;
  void take(const Result<OrderReport>& report);

  const RunPlan& plan_;
  const PrivateFolders& folders_;
  const WorldTerms terms_;
  const std::function<void(const std::string&)> say_;
  Clock::time_point look_again_{};
  std::vector<std::string> lost_;
  bool ranks_changed_ = false;  ///< since the loss of a host
  std::optional<HostProbe> probe_;
  Clock::time_point probe_again_{};
  std::optional<Connection> console_;  ///< has the order, and hasn't answered
  Clock::time_point order_again_{};
  bool is_ordered_ = false;
  bool waits_for_resume_ = false;  ///< that has been said
  bool cant_order_ = false;        ///< likewise: no console is reached
};

}  // namespace footplate
