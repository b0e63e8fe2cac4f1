#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "console/host/automation/rule_chunks.h"
#include "console/host/orders/order_desk.h"
#include "protocol/messages/rules_and_jobs.h"
#include "protocol/schema.h"

namespace footplate {

/// What every request has.
struct RequestHead {
  Json id;  ///< comes back with the answer
  std::string op;
};
/// Error (usage): no text as `op`. The id is read all the same.
Result<void> read_json(const Json& json, RequestHead& head);

/// Written as {name: value}, or as an order has them.
struct ChangeList {
  std::vector<Change> changes;
};
Result<void> read_json(const Json& json, ChangeList& changes);

}  // namespace footplate

namespace footplate::host {

// The fields of the requests of clients and scripts, by operation (docs/protocol.md). Read before the
// operation is called; requests_json.cpp has their names.

/// Reads the fields of one operation.
template <class Request>
struct RequestFields {
  /// Error (usage): a field of the wrong type.
  static Result<Request> read(const Json& line);
  /// Their names, with spaces between them.
  static std::string names();
};

// --- of the run ---

struct StacksRequest {
  std::optional<int> rank;  ///< nothing: all
};
struct DropRequest {
  int rank = -1;
};
struct GetRequest {
  std::vector<std::string> names;  ///< empty: all
};

// --- of orders ---

struct SetRequest {
  ChangeList changes;
  std::optional<std::int64_t> at_step;
  std::optional<double> timeout_s;
};
struct CallRequest {
  std::string action;
  Json arguments = Json::object();
  std::optional<std::int64_t> at_step;
  bool wait = false;  ///< for the call's end
  std::optional<double> timeout_s;
};
struct CancelRequest {
  std::uint64_t order = 0;
  std::optional<std::size_t> call;  ///< nothing: the order
  bool evaluation = false;          ///< instead: the one that is under way
};
struct OrderRequest {
  Order order;
};
/// An order by rank 0's number, or where it has none by the console's word.
struct WithdrawRequest {
  std::uint64_t order = 0;
  std::string ref;
};
struct WaitOrderRequest {
  std::uint64_t order = 0;
  std::string ref;
  OrderUntil until = OrderUntil::final;
  std::optional<double> timeout_s;
};
struct WaitCallRequest {
  std::uint64_t order = 0;
  std::size_t call = 0;
  std::optional<double> timeout_s;
};

// --- of persons ---

struct EvalRequest {
  std::string code;
  std::string name = "chunk";
  double timeout_s = 30;
  bool asks = false;
};
struct AnswerRequest {
  std::uint64_t question = 0;
  bool yes = false;
};
struct CompleteRequest {
  std::string code;
  std::optional<std::size_t> cursor;  ///< in bytes; nothing: at the end
};
struct HelpRequest {
  std::string name;
};
struct RoleRequest {
  std::optional<Role> role;  ///< nothing: only asks
};
struct AttachRequest {
  std::string from;
};
struct SubscribeRequest {
  std::vector<std::string> topics{"*"};
  std::optional<std::uint64_t> since;
};

// --- of scripts ---

struct WaitAnswerRequest {
  std::string text;
};
struct WaitStepRequest {
  double step = 0;
  std::optional<double> timeout_s;
};
struct WaitEventRequest {
  std::string event;
  std::optional<double> timeout_s;
};
struct WaitLinesRequest {
  std::optional<std::uint64_t> since;
};
struct WaitSecondsRequest {
  double seconds = 0;
};
struct RuleRequest {
  std::optional<RuleSpec> spec;
};
struct RuleOffRequest {
  std::int64_t rule = 0;
};
struct JobOffRequest {
  std::string job;
};
using WaitRulesRequest = RuleChunks::Registration;

}  // namespace footplate::host
