#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace footplate {

/// How `footplate run` starts a rank.
struct RankOptions {
  std::filesystem::path run_directory;
  int start = 1;          ///< which start of the run this is: config-START.json
  std::string resume;     ///< empty: fresh; "auto", or the path of a checkpoint or run
  std::string branch;     ///< of checkpoints, opened by this start; empty: as `resume` has it
  std::int64_t left = 0;  ///< step that ckpt.load went back from, to this start; 0: it did not
  /// How long `footplate run` had run when it started this process: run.time_limit counts from there.
  std::chrono::milliseconds ran{0};
  bool console = true;
  /// By rank, a number for each host that reductions take ranks to be on (comm.hierarchy); empty: those that
  /// they are on. A replay on one machine adds in the order of the run that it repeats.
  std::vector<int> host_groups = {};
  /// Its number, where rank 0 of a run has spawned this process to join it (comm.replace); -1: mpirun started
  /// it.
  int joins = -1;
  std::string corpus;  ///< with `joins`: Trainer::corpus_hash() of the ranks, to be its own, too
};

/// The whole life of a rank: MPI, records, control, training, the end. Returns the exit code, which is
/// the same on all ranks. Once per process.
int run_rank(const RankOptions& options);

}  // namespace footplate
