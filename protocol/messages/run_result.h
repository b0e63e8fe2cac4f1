#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/exit_codes.h"
#include "protocol/json.h"

namespace footplate {

/// Where ckpt.load goes: the checkpoint that the next start resumes from.
struct LoadTarget {
  std::string path;
  std::int64_t step = 0;
  std::string branch;  ///< that the next start saves into
  Json settings;       ///< of the next start, by name: {"value", "source"}
  std::string order;   ///< that asked for it, for the source of its settings
  Json store;          ///< what survives of `store` (kept_in_store)
};
Json to_json(const LoadTarget& target);
Result<void> read_json(const Json& json, LoadTarget& target);

/// How a start of a run ended: what result.json holds.
struct RunResult {
  int code = static_cast<int>(ExitCode::failed);  ///< as the exit code of the process, an ExitCode
  std::string reason;
  std::int64_t step = 0;
  std::optional<std::int64_t> skipped;    ///< steps up to that one that weren't finite; nothing: none
  std::optional<std::string> checkpoint;  ///< path of the last one; nothing: there is none
  int restarts = 0;
  std::optional<int> recoveries;
  /// Of all parameters and buffers, 16 hexadecimal digits; nothing: the state can't be read any more.
  std::optional<std::string> state_hash;
  std::optional<double> eval_loss;       ///< of the last evaluation on eval.batches
  std::optional<double> full_eval_loss;  ///< of the last one of everything, where eval.batches chooses less
  std::string note;
  std::optional<LoadTarget> load;  ///< ckpt.load ended it
};
Json to_json(const RunResult& result);
Result<void> read_json(const Json& json, RunResult& result);
/// As a file has it: fields of another type are as in a RunResult that nobody filled.
RunResult run_result_from_file(const Json& json);

// Reasons of ends that the programs know. All others are texts for people.
inline constexpr std::string_view kEndedDone = "done";
inline constexpr std::string_view kEndedAsked = "asked";
inline constexpr std::string_view kEndedRestart = "restart";
inline constexpr std::string_view kEndedLoad = "load";
inline constexpr std::string_view kEndedSignal = "signal";
inline constexpr std::string_view kEndedTimeLimit = "time limit";
inline constexpr std::string_view kEndedPauseLimit = "pause limit";
inline constexpr std::string_view kEndedUsage = "usage";

}  // namespace footplate
