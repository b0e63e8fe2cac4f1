#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "console/lua/session/answers_json.h"
#include "protocol/messages/link_messages.h"
#include "protocol/messages/reports.h"
#include "protocol/messages/rules_and_jobs.h"
#include "run_files/checkpoint_list.h"

/// What a script's process asks the console (docs/protocol.md, "The console and a session's Lua process").
/// Each has the word of its operation, kOp, and the type of what it is answered.
namespace footplate::lua::request {

// --- what is known ---

struct Status {
  static constexpr const char* kOp = "status";
  using Answer = RunStatus;
};
struct Orders {
  static constexpr const char* kOp = "orders";
  using Answer = std::vector<OrderReport>;
};
struct Rules {
  static constexpr const char* kOp = "rules";
  using Answer = std::vector<RuleStatus>;
};
struct Jobs {
  static constexpr const char* kOp = "jobs";
  using Answer = std::vector<JobStatus>;
};
struct Pending {
  static constexpr const char* kOp = "pending";
  using Answer = std::vector<PendingSetting>;
};
/// Settings in force, by name.
struct SettingsNow {
  static constexpr const char* kOp = "settings";
  using Answer = std::map<std::string, SettingNow>;
  std::vector<std::string> names;
};
struct Metrics {
  static constexpr const char* kOp = "metrics";
  using Answer = LoggedMetrics;
};
struct Store {
  static constexpr const char* kOp = "store";
  using Answer = Json;
};
struct Journal {
  static constexpr const char* kOp = "journal";
  using Answer = std::string;
};
/// Of the run: ckpt.list().
struct Checkpoints {
  static constexpr const char* kOp = "checkpoints";
  using Answer = std::vector<CheckpointSummary>;
};
struct CommReport {
  static constexpr const char* kOp = "wait_report";
  using Answer = footplate::CommReport;
};
struct DumpLedgers {
  static constexpr const char* kOp = "wait_dump";
  using Answer = DumpReport;
};
struct Stacks {
  static constexpr const char* kOp = "wait_stacks";
  using Answer = StackReport;
  std::optional<std::int64_t> rank;  ///< nothing: all
};

// --- orders ---

/// Answered at once; WaitOrder tells what becomes of it.
struct SendOrder {
  static constexpr const char* kOp = "order";
  using Answer = OrderTaken;
  Order order;
};

/// An order as requests name it.
struct OrderKey {
  std::uint64_t order = 0;  ///< rank 0's number; 0: it has none yet
  std::string ref;          ///< then: the console's word for it
};

/// How long an order is waited for.
enum class Until {
  now,        ///< not at all
  committed,  ///< or final
  outcome,    ///< final
};

struct WaitOrder {
  static constexpr const char* kOp = "wait_order";
  using Answer = OrderReport;
  OrderKey key;
  Until until = Until::outcome;
  std::optional<double> timeout_s;
};
struct Withdraw {
  static constexpr const char* kOp = "withdraw";
  using Answer = Done;
  OrderKey key;
};
struct WaitCall {
  static constexpr const char* kOp = "wait_call";
  using Answer = CallReport;
  std::uint64_t order = 0;
  int call = 0;
  std::optional<double> timeout_s;
};
struct CancelCall {
  static constexpr const char* kOp = "cancel";
  using Answer = Done;
  std::uint64_t order = 0;
  int call = 0;
};
struct CancelEvaluation {
  static constexpr const char* kOp = "cancel";
  using Answer = Done;
  bool evaluation = true;
};
/// Kills a rank.
struct DropRank {
  static constexpr const char* kOp = "wait_drop";
  using Answer = Done;
  std::int64_t rank = 0;
};
/// A question to the person at the client.
struct AskPerson {
  static constexpr const char* kOp = "wait_answer";
  using Answer = PersonAnswer;
  std::string text;
};

// --- waits ---

struct WaitStep {
  static constexpr const char* kOp = "wait_step";
  using Answer = PlaceReached;
  std::int64_t step = 0;
  std::optional<double> timeout_s;
};
struct WaitEvent {
  static constexpr const char* kOp = "wait_event";
  using Answer = PlaceReached;
  std::string event;
  std::optional<double> timeout_s;
};
struct WaitSeconds {
  static constexpr const char* kOp = "wait_seconds";
  using Answer = PlaceReached;
  double seconds = 0;
};
struct WaitLines {
  static constexpr const char* kOp = "wait_lines";
  using Answer = LoggedLines;
  std::optional<std::uint64_t> since;  ///< nothing: only where the next ones begin
};

// --- rules and jobs ---

/// Of a job.
struct RegisterRule {
  static constexpr const char* kOp = "rule";
  using Answer = RuleTaken;
  RuleSpec spec;
};
/// Of a session's chunk, which runs again in the rules' process.
struct RegisterRules {
  static constexpr const char* kOp = "wait_rules";
  using Answer = RulesTaken;
  std::string code;
  std::string name;
  std::vector<RuleSpec> rules;
};
struct SwitchRuleOff {
  static constexpr const char* kOp = "rule_off";
  using Answer = Done;
  std::int64_t rule = 0;
};
struct StopJob {
  static constexpr const char* kOp = "job_off";
  using Answer = Done;
  std::string job;
};

/// The fields of a request, one of those here.
template <class Request>
Json fields_of(const Request& request);

}  // namespace footplate::lua::request

namespace footplate {

template <>
struct EnumWords<lua::request::Until> {
  static constexpr std::array kAll{std::pair{lua::request::Until::now, std::string_view("now")},
                                   std::pair{lua::request::Until::committed, std::string_view("committed")},
                                   std::pair{lua::request::Until::outcome, std::string_view("final")}};
};

}  // namespace footplate
