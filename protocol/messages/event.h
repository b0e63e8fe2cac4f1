#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "protocol/messages/order_report.h"
#include "protocol/messages/run_result.h"
#include "protocol/messages/run_status.h"

namespace footplate {

/// What an event is about. In the order of EventData's alternatives.
enum class Topic {
  metrics,
  order,
  call,
  eval,
  ckpt,
  run,
  rank,
  warn,
  client,
  job,
  rule,
  nccl,
  profile,
  note,
  end
};
template <>
struct EnumWords<Topic> {
  static constexpr std::array kAll{
      std::pair{Topic::metrics, std::string_view("metrics")},
      std::pair{Topic::order, std::string_view("order")},
      std::pair{Topic::call, std::string_view("call")},
      std::pair{Topic::eval, std::string_view("eval")},
      std::pair{Topic::ckpt, std::string_view("ckpt")},
      std::pair{Topic::run, std::string_view("run")},
      std::pair{Topic::rank, std::string_view("rank")},
      std::pair{Topic::warn, std::string_view("warn")},
      std::pair{Topic::client, std::string_view("client")},
      std::pair{Topic::job, std::string_view("job")},
      std::pair{Topic::rule, std::string_view("rule")},
      std::pair{Topic::nccl, std::string_view("nccl")},
      std::pair{Topic::profile, std::string_view("profile")},
      std::pair{Topic::note, std::string_view("note")},
      std::pair{Topic::end, std::string_view("end")},
  };
};

/// What perf/tokens_per_s counts where the text "unit" of a line of metrics doesn't say it.
inline constexpr const char* kUsualUnit = "tokens";

/// Metrics that were logged, as a line of metrics.jsonl has them. Names are the run's own, so they stay an
/// object:
/// {"step": 812, "train/loss": 2.31, …}.
struct LoggedMetrics {
  Json values = Json::object();

  /// The step that they were logged at; 0 where the line has none.
  std::int64_t step() const;
  /// Nothing: there is none of this name, or it is no number.
  std::optional<double> number(const char* name) const;
  /// Empty: there is none of this name.
  std::string text(const char* name) const;
  /// "images/s": what perf/tokens_per_s is in.
  std::string pace_unit() const;
  /// Whether it is the light line of training (log.every), which may have other kinds of metrics besides.
  bool is_of_training() const { return values.contains("train/loss"); }
  /// Whether it is what an evaluation came to.
  bool is_of_evaluation() const {
    return values.contains("eval/seconds") || values.contains("eval/evaluation_failed");
  }
};
/// What a line of an evaluation may have, and the next one may not: what is newest of these is that line's.
inline constexpr std::array kNotOfEachEvaluation{
    "eval/evaluation_failed", "eval/reason",         "eval/retries",    "eval/partial",
    "eval/batches",           "eval/batches_wanted", "eval/local_loss", "eval/waited_s"};
Json to_json(const LoggedMetrics& metrics);
Result<void> read_json(const Json& json, LoggedMetrics& metrics);

/// Which of the held-out samples an evaluation took. Only losses of the same choice can be compared.
enum class EvaluatedOn {
  batches,     ///< what eval.batches says
  everything,  ///< all of them, where eval.batches chooses less
  other        ///< what the caller of eval.now said
};
template <>
struct EnumWords<EvaluatedOn> {
  static constexpr std::array kAll{std::pair{EvaluatedOn::batches, std::string_view("eval.batches")},
                                   std::pair{EvaluatedOn::everything, std::string_view("everything")},
                                   std::pair{EvaluatedOn::other, std::string_view("other")}};
};

/// An evaluation, or that it failed.
struct EvaluationResult {
  std::int64_t step = 0;  ///< of the parameters
  bool failed = false;
  std::optional<double> loss;             ///< mean over the weight; nothing: it failed
  std::map<std::string, double> metrics;  ///< what the task declares besides, by name
  /// Of several data sets, by their names: the same of each, its loss among them.
  std::map<std::string, std::map<std::string, double>> sets;
  std::int64_t tokens = 0;  ///< these three are left out where it failed
  std::int64_t batches = 0;
  double seconds = 0;
  EvaluatedOn on = EvaluatedOn::batches;
  std::optional<double> best;             ///< BestEvaluation's loss; infinity: none
  std::optional<std::int64_t> best_step;  ///< and its step
  int retries = 0;
  std::string reason;  ///< of the retries, or of the failure
  /// Of rank 0 alone, on its part: it failed because the ranks couldn't put theirs together.
  std::optional<double> local_loss;
  bool partial = false;
  std::optional<std::int64_t> batches_wanted;  ///< partial: of so many
};
Json to_json(const EvaluationResult& result);
Result<void> read_json(const Json& json, EvaluationResult& result);

/// A saved checkpoint, or that a save failed.
struct SaveResult {
  std::string path;
  std::int64_t step = 0;
  double seconds = 0;
  std::uint64_t bytes = 0;  ///< 0: it was there already
  std::string tag;
  std::string reason;  ///< it failed
  std::optional<double> waited_s =
      {};  ///< how long training waited for it, where most was done beside training
};
Json to_json(const SaveResult& result);
Result<void> read_json(const Json& json, SaveResult& result);

/// The run has come to another state.
struct RunChange {
  RunState state = RunState::running;
  std::optional<std::int64_t> step;
  std::string reason;
  std::optional<RunResult> result;  ///< it has ended
};
Json to_json(const RunChange& change);
Result<void> read_json(const Json& json, RunChange& change);

/// What has become of a rank, or of the world.
enum class RankChangeKind { stalled, back, killed, invited, joined, rebuilt, lost };
template <>
struct EnumWords<RankChangeKind> {
  static constexpr std::array kAll{
      std::pair{RankChangeKind::stalled, std::string_view("stalled")},
      std::pair{RankChangeKind::back, std::string_view("back")},
      std::pair{RankChangeKind::killed, std::string_view("killed")},
      std::pair{RankChangeKind::invited, std::string_view("invited")},
      std::pair{RankChangeKind::joined, std::string_view("joined")},
      std::pair{RankChangeKind::rebuilt, std::string_view("rebuilt")},
      std::pair{RankChangeKind::lost, std::string_view("lost")},
  };
};
struct RankChange {
  RankChangeKind state = RankChangeKind::stalled;
  std::optional<int> rank;  ///< that it is about
  std::string text;         ///< for people
  std::optional<std::vector<int>>
      ranks;  ///< joined: by their numbers now; lost: by those before; rebuilt: none
  std::optional<int> world_size;
  std::optional<std::int64_t> step;  ///< from which training goes on
  std::optional<std::int64_t> left;  ///< the newest step before, where training goes back to a checkpoint's
  std::optional<bool> level;         ///< some were behind, and took the state of another
  std::optional<std::int64_t> ms;
};
Json to_json(const RankChange& change);
Result<void> read_json(const Json& json, RankChange& change);

/// What a warning is about.
enum class WarningKind {
  other,
  collective,   ///< one is overdue (failures.md)
  timeout,      ///< one hangs, and what follows
  recovery,     ///< it waits for somebody
  advice,       ///< a setting of collectives that would be better
  memory,       ///< a step for which a rank had none
  late,         ///< an order for a step that is over
  disagree,     ///< the ranks applied an order differently
  state_hash,   ///< the ranks' states differ
  sync,         ///< a rule took longer than training waits
  lost_events,  ///< too many, too fast
  replacement,
  console,
  control,
  evaluation,
  nonfinite,
  corpus,
  cuda_graph,
  load,
  nccl,
  script,
  checkpoint,  ///< one that wasn't written
};
template <>
struct EnumWords<WarningKind> {
  static constexpr std::array kAll{
      std::pair{WarningKind::other, std::string_view("other")},
      std::pair{WarningKind::collective, std::string_view("collective")},
      std::pair{WarningKind::timeout, std::string_view("timeout")},
      std::pair{WarningKind::recovery, std::string_view("recovery")},
      std::pair{WarningKind::advice, std::string_view("advice")},
      std::pair{WarningKind::memory, std::string_view("memory")},
      std::pair{WarningKind::late, std::string_view("late")},
      std::pair{WarningKind::disagree, std::string_view("disagree")},
      std::pair{WarningKind::state_hash, std::string_view("state_hash")},
      std::pair{WarningKind::sync, std::string_view("sync")},
      std::pair{WarningKind::lost_events, std::string_view("lost_events")},
      std::pair{WarningKind::replacement, std::string_view("replacement")},
      std::pair{WarningKind::console, std::string_view("console")},
      std::pair{WarningKind::control, std::string_view("control")},
      std::pair{WarningKind::evaluation, std::string_view("evaluation")},
      std::pair{WarningKind::nonfinite, std::string_view("nonfinite")},
      std::pair{WarningKind::corpus, std::string_view("corpus")},
      std::pair{WarningKind::cuda_graph, std::string_view("cuda_graph")},
      std::pair{WarningKind::load, std::string_view("load")},
      std::pair{WarningKind::nccl, std::string_view("nccl")},
      std::pair{WarningKind::script, std::string_view("script")},
      std::pair{WarningKind::checkpoint, std::string_view("checkpoint")},
  };
};
struct Warning {
  WarningKind kind = WarningKind::other;
  std::string text;                       ///< for people
  std::optional<std::int64_t> step;       ///< most kinds
  std::optional<std::vector<int>> ranks;  ///< collective, recovery, advice, disagree, state_hash
  std::vector<std::string> tensors;       ///< state_hash, where they are known
  std::optional<std::uint64_t> sequence;  ///< collective
  std::string verdict;                    ///< collective: missing, slow, different, over
  std::string action;                     ///< timeout: rebuild, skip
  std::string setting;                    ///< advice, memory: the one proposed
  Json value;                             ///< its value
  std::string command;                    ///< that sets it
  std::optional<std::uint64_t> order;     ///< advice: that sets it; late: which
  std::string job;                        ///< script: of which job
  std::optional<std::int64_t> rule;       ///< script: of which rule
};
Json to_json(const Warning& warning);
Result<void> read_json(const Json& json, Warning& warning);

enum class ClientState { attached, detached };
template <>
struct EnumWords<ClientState> {
  static constexpr std::array kAll{std::pair{ClientState::attached, std::string_view("attached")},
                                   std::pair{ClientState::detached, std::string_view("detached")}};
};
/// A person's console has come or gone.
struct ClientChange {
  ClientState state = ClientState::attached;
  std::string user;
  std::string session;
  std::string from;  ///< where the person sits
};
Json to_json(const ClientChange& change);
Result<void> read_json(const Json& json, ClientChange& change);

/// A line that a job script or a rule has printed.
struct JobLine {
  std::string job;
  std::string text;
};
Json to_json(const JobLine& line);
Result<void> read_json(const Json& json, JobLine& line);

/// A rule was switched off.
struct RuleChange {
  std::int64_t rule = 0;
  std::string text;
};
Json to_json(const RuleChange& change);
Result<void> read_json(const Json& json, RuleChange& change);

/// What nccl.measure has found for one collective, algorithm and size.
struct MeasuredCollective {
  std::string collective;
  std::string algorithm;
  std::string protocol;
  int channels = 0;
  int ranks = 0;
  std::int64_t at_least = 0;  ///< elements, a power of ten
  std::int64_t count = 0;
  std::int64_t bytes = 0;
  double mean_us = 0;
  double least_us = 0;
  double most_us = 0;
  double bus_gb_per_s = 0;
};
struct NcclMeasurement {
  std::int64_t step = 0;   ///< that it ended at
  std::int64_t steps = 0;  ///< that it lasted
  double step_ms = 0;
  std::vector<MeasuredCollective> collectives;
  std::int64_t unfinished = 0;  ///< collectives whose end wasn't told
  std::int64_t left_out = 0;    ///< and that found no place in the table
};
Json to_json(const NcclMeasurement& measurement);
Result<void> read_json(const Json& json, NcclMeasurement& measurement);

/// What became of profile.now.
struct StepProfile {
  std::int64_t first = 0;         ///< step that it begins with
  std::int64_t steps = 0;         ///< that were asked for
  std::int64_t recorded = 0;      ///< that every rank's trace has; fewer where there were too many operations
  std::string path = {};          ///< of the trace; empty: it failed
  std::vector<int> missing = {};  ///< ranks whose traces are on hosts that don't share the run's folder
  std::int64_t lost_collectives = 0;  ///< that a rank's trace lacks: a step had more than its ledger keeps
  std::string reason = {};            ///< why it failed
};
Json to_json(const StepProfile& profile);
Result<void> read_json(const Json& json, StepProfile& profile);

/// What somebody wrote by run.note.
struct Note {
  std::int64_t step = 0;
  std::string text;
  std::string source;  ///< the order: "order 12 (ann)"
};
Json to_json(const Note& note);
Result<void> read_json(const Json& json, Note& note);

/// What an event tells. One alternative for each Topic, in its order.
using EventData =
    std::variant<LoggedMetrics, OrderReport, CallReport, EvaluationResult, SaveResult, RunChange, RankChange,
                 Warning, ClientChange, JobLine, RuleChange, NcclMeasurement, StepProfile, Note, RunResult>;

inline Topic topic_of(const EventData& data) {
  return static_cast<Topic>(data.index());
}
Json to_json(const EventData& data);
/// Error (usage): a field of the wrong type.
Result<EventData> event_data_from_json(Topic topic, const Json& json);

/// Something that has happened in a run: a line of events.jsonl, and what clients subscribe to.
struct Event {
  EventData data;
  std::string time;            ///< ISO 8601
  std::uint64_t sequence = 0;  ///< of the console, without gaps; 0: it hasn't numbered it
  std::uint64_t hold = 0;      ///< training waits for the release of this; 0: it doesn't
  std::uint64_t lost = 0;      ///< events before it that this client was too slow for
};
/// {"type": "event", "topic", "time", "data", …}
Json to_json(const Event& event);
/// Error (usage): a topic that this build doesn't know, a field of the wrong type.
Result<void> read_json(const Json& json, Event& event);

}  // namespace footplate
