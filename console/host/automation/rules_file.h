#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "protocol/json.h"
#include "protocol/result.h"

namespace footplate::host {

/// rules.json: what a new console, a new Lua process and a new start of the run go on with.
struct KeptRules {
  std::string started;  ///< the start of the run that wrote it
  std::string begun;    ///< the start whose on("start") has run
  std::int64_t next_chunk = 1;
  std::int64_t next_rule = 1;
  Json jobs = Json::object();   ///< {name: {"started", "given", "state"}}
  Json chunks = Json::array();  ///< RuleChunks::records()
  Json rules = Json::array();   ///< Rule::to_record() of each that isn't a job's

  /// Where there is no such file, or it isn't JSON: as made. Throws Json::exception where a field has the
  /// wrong type.
  static KeptRules read(const std::filesystem::path& path);

  /// Whole or not at all; `durable`: also where the machine stops in between. Errors: the file.
  Result<void> write(const std::filesystem::path& path, bool durable) const;
};

}  // namespace footplate::host
