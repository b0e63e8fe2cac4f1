#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "protocol/messages/order_report.h"

namespace footplate {

/// What the run as a whole is doing.
enum class RunState { starting, running, paused, evaluating, saving, recovering, ending, ended };
template <>
struct EnumWords<RunState> {
  static constexpr std::array kAll{
      std::pair{RunState::starting, std::string_view("starting")},
      std::pair{RunState::running, std::string_view("running")},
      std::pair{RunState::paused, std::string_view("paused")},
      std::pair{RunState::evaluating, std::string_view("evaluating")},
      std::pair{RunState::saving, std::string_view("saving")},
      std::pair{RunState::recovering, std::string_view("recovering")},
      std::pair{RunState::ending, std::string_view("ending")},
      std::pair{RunState::ended, std::string_view("ended")},
  };
};

/// The newest collective of a rank.
struct CollectiveStatus {
  std::uint64_t sequence = 0;  ///< 1, 2, 3, … the same on all ranks
  std::string kind;            ///< all_reduce, broadcast, …
  std::int64_t elements = 0;
  bool running = false;
  double age_s = 0;  ///< since it began
};
Json to_json(const CollectiveStatus& collective);
Result<void> read_json(const Json& json, CollectiveStatus& collective);

/// What rank 0 knows of a rank.
struct RankStatus {
  int rank = 0;
  std::string host;
  int pid = 0;
  std::int64_t step = 0;
  std::string phase;    ///< for people: forward, reduce, …
  double phase_s = 0;   ///< since it came to this phase
  double silent_s = 0;  ///< since it was last heard of
  bool stalled = false;
  std::optional<CollectiveStatus> collective;
};
Json to_json(const RankStatus& rank);
Result<void> read_json(const Json& json, RankStatus& rank);

/// What `footplate status` shows.
struct RunStatus {
  std::string run;      ///< name
  std::string started;  ///< ISO 8601
  std::string branch;
  RunState state = RunState::starting;
  std::int64_t step = 0;
  std::int64_t steps = 0;  ///< train.steps
  int world_size = 1;
  // Of the newest metrics; nothing: there are none yet.
  std::optional<double> loss;
  std::optional<double> lr;
  std::optional<double> eval_loss;
  std::optional<double> tokens_per_s;
  std::string pace_unit = "tokens/s";  ///< what that is in
  std::optional<double> step_ms;
  std::optional<double> best_eval_loss;
  std::optional<double> eta_s;                  ///< until train.steps
  std::optional<std::int64_t> evaluating_step;  ///< whose parameters are evaluated beside training
  std::optional<std::int64_t> saving_step;      ///< whose checkpoint is written beside training
  std::optional<double> saving_share;           ///< of it that is written, 0 to 1
  std::vector<std::string> notes;
  std::vector<OrderReport> orders;  ///< without an outcome
  std::vector<RankStatus> ranks;
};
Json to_json(const RunStatus& status);
Result<void> read_json(const Json& json, RunStatus& status);

}  // namespace footplate
