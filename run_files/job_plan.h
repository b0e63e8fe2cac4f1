#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "protocol/result.h"

namespace footplate {

/// A job script that the console starts when the ranks begin.
struct PlannedJob {
  std::string name;
  std::string file;  ///< in the folder jobs of the run directory
  std::string path;  ///< as given
  std::vector<std::string> arguments;
};

/// jobs/jobs.json (docs/protocol.md, "Job scripts").
struct JobPlan {
  bool unattended = false;  ///< an error stops the run
  std::int64_t given = 0;   ///< how often scripts were named on a command line
  std::vector<PlannedJob> jobs;
};

/// Fields of another type, and jobs that can't be read, are left out. Without such a file: no jobs.
JobPlan read_job_plan(const std::filesystem::path& run_directory);

/// Errors: as write_json_file.
Result<void> write_job_plan(const std::filesystem::path& run_directory, const JobPlan& plan);

}  // namespace footplate
