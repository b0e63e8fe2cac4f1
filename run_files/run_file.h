#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "protocol/messages/best_evaluation.h"
#include "protocol/messages/run_status.h"
#include "protocol/result.h"

namespace footplate {

/// Where a rank of the newest start runs.
struct RankPlace {
  int rank = 0;
  std::string host;
  int pid = 0;
};

/// What run.json has: a run as others find it. The supervisor and rank 0 write into it in turn.
struct RunFile {
  std::string id;
  std::string name;
  std::string directory;  ///< absolute; the record in another folder is a copy's
  std::optional<RunState> state;
  int protocol = kProtocolVersion;
  std::string socket;              ///< path of the console's socket
  std::string host;                ///< of rank 0 and the console
  std::string launcher_host;       ///< of the supervisor; empty: the same
  std::string started;             ///< ISO 8601
  std::string starts_at;           ///< between two starts: when the next one is due; else empty
  std::optional<int> world_size;   ///< now
  std::optional<int> ranks_asked;  ///< as many as the newest start began with
  std::string hosts;               ///< "n1:2,n2:2", of the newest start; empty: one machine
  std::string named_hosts;         ///< those that starts take theirs from, as --host has them
  int spare_hosts = 0;             ///< of named_hosts: a start is on as many fewer
  std::string slurm_job;           ///< that `footplate run` is in; empty: none
  int slurm_restarts = 0;          ///< SLURM_RESTART_COUNT of it
  std::vector<RankPlace> ranks;
  int console_pid = 0;
  int launcher_pid = 0;  ///< of the supervisor; 0: nobody launched it
  std::uint64_t launcher_started = 0;
  std::int64_t step = 0;
  std::optional<BestEvaluation> best_evaluation;  ///< of the branch that the newest start is in; rank 0's
};
Json to_json(const RunFile& run);

/// "2", or "1 of 2" where ranks were lost; empty: not known.
std::string ranks_text(const RunFile& run);

/// Fields that are missing or of another type are as in a RunFile that nobody filled.
RunFile run_file_from_json(const Json& json);

/// Errors: as read_json_file; (usage) the file holds no object.
Result<RunFile> read_run_file(const std::filesystem::path& run_directory);

/// Sets all fields of `run`, and keeps what else the file has. Errors: as update_json_file.
Result<void> update_run_file(const std::filesystem::path& run_directory, const RunFile& run);

/// Its end, once nobody starts the ranks again. Errors: as update_json_file.
Result<void> record_end(const std::filesystem::path& run_directory, std::int64_t step);

}  // namespace footplate
