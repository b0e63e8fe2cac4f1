#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "protocol/messages/event.h"
#include "protocol/schema.h"
#include "protocol/value.h"

namespace footplate {

// What rank 0 and its console tell each other, one line each (docs/protocol.md, "Rank 0 and the console").

/// Which run it is, and which start of it.
struct RunIdentity {
  std::string name;
  std::string id;
  std::string directory;
  std::string socket;  ///< path of the console's socket
  std::string host;    ///< of rank 0
  std::string user;    ///< whose run it is
  std::string started;
  std::string branch;
  std::int64_t left = 0;   ///< step that ckpt.load went back from, to this start; 0: it did not
  std::int64_t began = 0;  ///< step that this start began at
  int world_size = 1;
};
Json to_json(const RunIdentity& run);
Result<void> read_json(const Json& json, RunIdentity& run);

/// A setting's value and where it comes from.
struct SettingNow {
  Json value;
  std::string source;
};
Json to_json(const SettingNow& setting);
Result<void> read_json(const Json& json, SettingNow& setting);

// --- rank 0 says ---

/// First.
struct RankZeroHello {
  int protocol = 0;
  RunIdentity run;
  Json schema = Json::object();
  Json settings = Json::object();
  Json at_start = Json::object();    ///< {name: value} in force of the settings that apply at the next start
  RunStatus status;                  ///< its orders with what they ask for
  std::vector<OrderReport> reports;  ///< the last final ones, newest last; applied ones with their order
  Json store = Json::object();
  std::vector<Event> events;  ///< of ranks, that no console was there to hear
};
struct StatusUpdate {
  RunStatus status;
};
/// Those that an order has moved.
struct SettingsUpdate {
  std::map<std::string, SettingNow> settings;
};
Result<void> read_json(const Json& json, SettingsUpdate& update);
/// The computed settings that a logged line has: train/lr is optim.lr.
SettingsUpdate computed_settings(const Schema& schema, const LoggedMetrics& line);
struct RunEnd {
  RunResult result;
};
/// What all ranks have answered to AskRanks, put together.
struct RanksAnswer {
  std::string query;
  std::optional<int> rank;  ///< the one that was asked; nothing: all
  Json report;              ///< as the query gives it
};
using RankZeroMessage = std::variant<RankZeroHello, StatusUpdate, SettingsUpdate, OrderReport, CallReport,
                                     RanksAnswer, Event, RunEnd>;
Json to_json(const RankZeroMessage& message);
/// Errors (usage): an unknown type, a field of the wrong type.
Result<RankZeroMessage> rank_zero_message_from_json(const Json& json);

// --- the console says ---

struct SubmitOrder {
  std::string ref;                ///< comes back with every report of it
  Result<Order> order = Order{};  ///< an error is reported as its refusal
  std::size_t bytes = 0;          ///< of it as JSON
};
struct WithdrawOrder {
  std::optional<std::uint64_t> id;
  std::string ref;  ///< where it has no id yet
};
struct CancelCall {
  std::uint64_t order = 0;
  std::size_t call = 0;
};
/// The one that is under way.
struct CancelEvaluation {};
struct AskStatus {};
/// A question that ranks answer without their training thread: runtime/watch has the queries by name.
struct AskRanks {
  std::string query;
  std::optional<int> rank;  ///< nothing: all
};
/// To be killed.
struct DropRank {
  int rank = 0;
  std::string user;
};
/// Whether somebody looks.
struct FollowRun {
  bool on = false;
};
/// Recorded, printed, and sent back as an event.
struct PublishEvent {
  EventData data;  ///< of a client, job, rule or warn
};
/// After events of these topics training waits for a release, at most so many ms. Replaces what was said
/// before.
struct SyncTopics {
  std::map<Topic, double> budget_ms;
};
struct ReleaseHold {
  std::uint64_t hold = 0;
};
using ConsoleMessage = std::variant<SubmitOrder, WithdrawOrder, CancelCall, CancelEvaluation, AskStatus,
                                    AskRanks, DropRank, FollowRun, PublishEvent, SyncTopics, ReleaseHold>;
Json to_json(const ConsoleMessage& message);
/// Errors (usage): an unknown type, a field of the wrong type.
Result<ConsoleMessage> console_message_from_json(const Json& json);

}  // namespace footplate
