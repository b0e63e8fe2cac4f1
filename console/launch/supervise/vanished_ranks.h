#pragma once

#include <chrono>
#include <filesystem>
#include <optional>

namespace footplate {

/// Whether a launcher has outlived all ranks. Open MPI's mpirun doesn't always end then: not where they die
/// as it starts another process for them (comm.replace).
class VanishedRanks {
 public:
  using Clock = std::chrono::steady_clock;

  explicit VanishedRanks(std::filesystem::path run_directory) : run_directory_(std::move(run_directory)) {}

  /// Whether none of those that run.json has, all of them on this host, has lived for some seconds. Looks
  /// once a second.
  bool look(Clock::time_point now);

 private:
  bool are_gone() const;

  std::filesystem::path run_directory_;
  Clock::time_point look_again_{};
  std::optional<Clock::time_point> since_;
};

}  // namespace footplate
