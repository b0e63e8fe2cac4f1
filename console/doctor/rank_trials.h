#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "console/doctor/finding.h"
#include "console/doctor/host_checks.h"
#include "console/doctor/machine.h"
#include "console/doctor/trial_answers_json.h"
#include "console/launch/start/command.h"
#include "console/launch/start/signals.h"
#include "run_files/private_folders.h"

namespace footplate {

/// Tries for real what a run does, with processes that are started as a run's are. Everything it makes is in
/// private folders, and is gone with it. Call on the main thread (start_child). A signal to this process
/// ends the try that is under way, and was_interrupted() says so.
class Trials {
 public:
  /// `program_folder` as in RunPlan. Errors: the private folders can't be made.
  static Result<Trials> prepare(std::filesystem::path program_folder, Signals& signals);
  ~Trials();
  Trials(Trials&& other) noexcept;
  Trials(const Trials&) = delete;
  Trials& operator=(const Trials&) = delete;
  Trials& operator=(Trials&&) = delete;

  /// How hosts speak with each other from here on: comm.network and comm.ports of the run that is meant.
  void speak_over(std::string network, std::optional<PortRange> ports);

  /// The libraries that footplate-rank has; no MPI is started. Errors: it can't be started, with what it
  /// said.
  Result<LibrariesAnswer> libraries();

  /// Which library's products are the faster ones, and the setting that takes it.
  Check products();

  /// One of two ranks is killed, the other goes on without it.
  Check fault_tolerance();

  /// An all-reduce of float32 between two ranks, checked and timed.
  Check reduction(const std::string& name, std::int64_t elements);

  /// A run of two ranks in which every evaluation fails on every rank: it has to train to its end all the
  /// same, and to have recorded the failures.
  Check evaluation();

  /// A process on `host` alone. `here` is libraries()' answer, to compare with. An error of the check says
  /// what ssh or mpirun said, and how to mend it.
  Check host(const Host& host, const LibrariesAnswer& here);

  /// An all-reduce between one process on each of them, at least two.
  Check hosts_together(const std::vector<Host>& hosts);

  /// Bandwidth and latency between a process on each.
  Check link(const Host& a, const Host& b);

  /// The number of a signal that came, or 0.
  int was_interrupted() const { return interrupted_; }

 private:
  Trials(std::filesystem::path program_folder, Signals& signals, PrivateFolders folders, int lock);

  /// `hosts`: one rank on each; none: all on this machine.
  Result<Json> answer_of_ranks(int ranks, const std::vector<std::string>& arguments,
                               std::chrono::seconds at_most, const std::vector<Host>& hosts);
  template <class Answer>
  Result<Answer> ask_ranks(int ranks, const std::vector<std::string>& arguments, std::chrono::seconds at_most,
                           const std::vector<Host>& hosts = {}) {
    const auto json = answer_of_ranks(ranks, arguments, at_most, hosts);
    if (!json) return tl::unexpected(json.error());
    Answer answer;
    if (auto read = read_json(*json, answer); !read)
      return fail(ErrorKind::failed, "footplate-rank's answer can't be read: " + read.error().message);
    return answer;
  }
  Check judge_reduction(Check check, const ReductionAnswer& answer, const std::string& between) const;
  Result<int> run_to_end(const Command& command, std::chrono::seconds at_most);
  std::string last_output() const;
  std::filesystem::path out() const { return folders_.temporary / "doctor.out"; }
  std::filesystem::path err() const { return folders_.temporary / "doctor.err"; }

  std::filesystem::path program_folder_;
  Signals& signals_;
  PrivateFolders folders_;
  std::string network_ = kAutoNetwork;
  std::optional<PortRange> ports_;
  int lock_;  ///< -1 once moved from
  int interrupted_ = 0;
};

/// Bytes that a reduction of so many float32 between two ranks needs on this machine, with some to spare.
std::int64_t memory_of_reduction(std::int64_t elements);

/// The largest one, in whole millions, that so many bytes are enough for; 0: not even one million.
std::int64_t largest_reduction(std::int64_t memory);

}  // namespace footplate
