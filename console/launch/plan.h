#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "protocol/schema.h"

namespace footplate {

/// What `footplate run` has decided before anything is started.
struct RunPlan {
  std::string name;
  std::string id;                        ///< 8 hexadecimal digits, new for each `footplate run`
  std::filesystem::path directory;       ///< runs/NAME, absolute
  std::filesystem::path program_folder;  ///< where footplate-rank is
  int ranks = 1;
  int start = 1;                      ///< number of the first start: config-START.json
  std::optional<std::string> resume;  ///< "auto" or a checkpoint's path
  int restarts = 0;                   ///< after failures
  Schema schema;                      ///< that the programs were built with
};

/// 8 random hexadecimal digits: names a run's socket and private folders.
Result<std::string> new_run_id();

}  // namespace footplate
