#pragma once

#include <optional>
#include <string>

#include "console/launch/supervise/start_watch.h"
#include "protocol/messages/run_result.h"

namespace footplate {

/// What is known of a run that has no console: `footplate status --json` shows it in the form of a status.
struct RecordStatus {
  std::string run;    ///< name
  std::string state;  ///< as of RunRecord::state
  std::int64_t step = 0;
  std::string directory;
  std::optional<RunResult> result;
  std::optional<StartStatus> start;  ///< it is starting
  std::string ranks;                 ///< "1 of 2", where some were lost
};
Json to_json(const RecordStatus& status);

}  // namespace footplate
