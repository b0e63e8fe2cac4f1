#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "protocol/messages/run_result.h"
#include "run_files/run_file.h"

namespace footplate {

/// How a run is, judged from its files and the processes of this host.
enum class Life {
  live,   ///< its supervisor or one of its ranks runs
  lost,   ///< its record says it runs, and none of its processes does
  ended,  ///< it has a result
};

std::string_view to_string(Life life);

/// A run as its folder describes it: run.json and, where it has ended, result.json.
struct RunRecord {
  std::filesystem::path directory;
  RunFile run;
  std::optional<RunResult> result;  ///< of the newest start, once that has ended
  Life life = Life::lost;

  std::string name() const;   ///< of its folder: a copy has another one than its record
  std::string state() const;  ///< "running", "lost", "ended", …
  std::string socket() const;
  std::string host() const;
  std::int64_t step() const;
  pid_t launcher() const;           ///< the supervisor; 0 where the record lacks it
  bool elsewhere() const;           ///< rank 0 and the console are on another host
  bool launcher_elsewhere() const;  ///< the supervisor is
  bool launcher_is_gone() const;    ///< the supervisor was on this host; its janitor ends what it has left
  bool is_copy() const;             ///< the record is that of another folder, which is there, too

  bool is_done() const;  ///< it has trained to train.steps

  /// Of one that isn't live, what people type next: the report of one that is done and how to make it longer,
  /// else the log and how to go on.
  std::string what_next() const;

  /// "done at step 1300, checkpoint …, exit code 0", or why nothing is known.
  std::string outcome() const;
};

/// Error (unreachable): `directory` holds no run.
Result<RunRecord> read_run(const std::filesystem::path& directory);

/// How long ago an ISO time was, in seconds; negative if it can't be read.
double seconds_since(const std::string& iso);

}  // namespace footplate
