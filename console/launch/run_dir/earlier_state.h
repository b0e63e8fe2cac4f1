#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "protocol/json.h"
#include "protocol/messages/run_result.h"

namespace footplate {

/// What a run's folder says of the run before another start: record, result, remembered command line, job
/// scripts, settings. A start that never does a step leaves all of it as it was. Its logs stay.
class EarlierState {
 public:
  /// Of a run that is new: nothing to be put back.
  EarlierState() = default;

  /// To be asked before anything of the new start is written. Nothing is kept of a run that has never done a
  /// step itself: there the newest attempt counts.
  static EarlierState of(const std::filesystem::path& directory);

  explicit operator bool() const { return !directory_.empty(); }

  /// Takes back what starts since then have written. Errors are passed over: what can't be put back is as the
  /// start left it.
  void put_back() const;

 private:
  struct KeptFile {
    std::filesystem::path path;
    std::optional<Json> content;  ///< nothing: there was no such file
  };
  struct KeptScript {
    std::filesystem::path path;
    std::string text;
  };

  std::filesystem::path directory_;
  std::vector<KeptFile> files_;
  std::vector<KeptScript> scripts_;
  std::set<std::string> of_starts_;  ///< names of config-K.json and the like
  std::uintmax_t starts_bytes_ = 0;  ///< of starts.jsonl
};

/// How the last start ended that never did a step and left no other trace: for those who wait for that start.
/// Gone as the next start begins.
std::optional<RunResult> read_refused_start(const std::filesystem::path& directory);
void write_refused_start(const std::filesystem::path& directory, const RunResult& result);
void forget_refused_start(const std::filesystem::path& directory);

}  // namespace footplate
