#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "protocol/json.h"

namespace footplate {

/// A job script of jobs.json.
struct PlannedJob {
  std::string name = "job";
  std::string file;  ///< in RUN/jobs
  std::string path;  ///< as it was given
  std::vector<std::string> arguments;
};
Json to_json(const PlannedJob& job);
Result<void> read_json(const Json& json, PlannedJob& job);

/// jobs.json: what `footplate run` has left for the console (docs/protocol.md, "Job scripts").
struct JobPlan {
  bool unattended = false;  ///< nobody looks: an error of a script stops the run
  std::int64_t given = 0;   ///< how often job scripts were named on a command line
  std::vector<PlannedJob> jobs;

  /// Where there is no such file, or it isn't JSON: as made. Error (usage): a field of the wrong type.
  static Result<JobPlan> read(const std::filesystem::path& path);
};
Json to_json(const JobPlan& plan);
Result<void> read_json(const Json& json, JobPlan& plan);

}  // namespace footplate
