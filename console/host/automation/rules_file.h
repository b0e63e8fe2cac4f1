#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "protocol/messages/rules_and_jobs.h"
#include "protocol/schema.h"

namespace footplate {

/// A chunk that has registered rules.
struct KeptChunk {
  std::int64_t id = 0;
  std::string code;
  std::string name = "chunk";
  std::string user;
  std::string session;
  Role role = Role::view;  ///< of that session
};
Json to_json(const KeptChunk& chunk);
Result<void> read_json(const Json& json, KeptChunk& chunk);

/// A rule that isn't a job's.
struct KeptRule {
  RuleStatus status;
  RuleSpec spec;
  Role role = Role::view;
  std::int64_t chunk = 0;
  std::int64_t next_step = -1;
  double due = 0;
  std::int64_t fired_at = -1;
  bool called = false;
  bool for_good = false;
};
Json to_json(const KeptRule& rule);
Result<void> read_json(const Json& json, KeptRule& rule);

/// What has become of a job script.
struct KeptJob {
  std::string started;                ///< the start of the run that it was last run in
  std::optional<std::int64_t> given;  ///< how often scripts had been named on a command line then
  JobState state = JobState::running;
};
Json to_json(const KeptJob& job);
Result<void> read_json(const Json& json, KeptJob& job);

/// rules.json: what a new console, a new Lua process and a new start of the run go on with.
struct KeptRules {
  std::string started;  ///< the start of the run that wrote it
  std::string begun;    ///< the start whose on("start") has run
  std::int64_t next_chunk = 1;
  std::int64_t next_rule = 1;
  std::map<std::string, KeptJob> jobs;  ///< by name
  std::vector<KeptChunk> chunks;
  std::vector<KeptRule> rules;

  /// Where there is no such file, or it isn't JSON: as made. A job, chunk or rule that can't be read is left
  /// out, and so is a rule whose chunk is: `lost` has a sentence for each. The numbers of new ones stay above
  /// those of all that were read.
  static KeptRules read(const std::filesystem::path& path, std::vector<std::string>& lost);

  /// Whole or not at all; `durable`: also where the machine stops in between. Errors: the file.
  Result<void> write(const std::filesystem::path& path, bool durable) const;
};
Json to_json(const KeptRules& kept);
KeptRules read_kept_rules(const Json& json, std::vector<std::string>& lost);

}  // namespace footplate
