#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "protocol/result.h"

namespace footplate {

/// One line of starts.jsonl: what rank 0 writes once a start of the run has trained its way to the loop.
struct StartRecord {
  int start = 0;                        ///< 1 for the first
  std::string time = {};                ///< ISO 8601, UTC; the journal's part of this start has the same
  Json versions = {};                   ///< of the libraries, by name
  std::vector<std::string> hosts = {};  ///< by rank
  int world_size = 0;
  std::int64_t step = 0;        ///< that it began at
  std::string resumed = {};     ///< path of the checkpoint; empty: fresh
  std::uint64_t journal = 0;    ///< the last order that this checkpoint holds; 0: none
  Json given = Json::object();  ///< what the command line or the config set otherwise than it, by name
  std::string branch = "main";
  bool loaded = false;  ///< ckpt.load led to it: what came after the checkpoint is left behind
};

Json to_json(const StartRecord& start);

/// Fields that are missing or of another type are as in a StartRecord that nobody filled.
StartRecord start_from_json(const Json& json);

/// Whether a start has come to its first step.
bool has_begun(const std::filesystem::path& run_directory, int start);

/// The step that a start began at; 0: it hasn't got to its first step, or its line can't be read.
std::int64_t first_step_of(const std::filesystem::path& run_directory, int start);

/// All lines of a run's starts.jsonl; empty where it isn't there. A last line without its end is left out:
/// the machine stopped while it was written. Error (usage): a line that isn't an object.
Result<std::vector<StartRecord>> read_start_records(const std::filesystem::path& run_directory);

}  // namespace footplate
