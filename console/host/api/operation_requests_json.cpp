#include <cmath>

#include "console/host/api/operation_requests.h"
#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<RequestHead> {
  static void list(auto& field, auto& head) {
    field("id", head.id);
    field("op", head.op);
  }
};

template <>
struct FieldsOf<host::StacksRequest> {
  static void list(auto& field, auto& request) { field("rank", request.rank); }
};

template <>
struct FieldsOf<host::DropRequest> {
  static void list(auto& field, auto& request) { field("rank", request.rank); }
};

template <>
struct FieldsOf<host::GetRequest> {
  static void list(auto& field, auto& request) { field("names", request.names); }
};

template <>
struct FieldsOf<host::SetRequest> {
  static void list(auto& field, auto& request) {
    field("changes", request.changes);
    field("at_step", request.at_step);
    field("timeout_s", request.timeout_s);
  }
};

template <>
struct FieldsOf<host::CallRequest> {
  static void list(auto& field, auto& request) {
    field("action", request.action);
    field("arguments", request.arguments);
    field("at_step", request.at_step);
    field("wait", request.wait);
    field("timeout_s", request.timeout_s);
  }
};

template <>
struct FieldsOf<host::CancelRequest> {
  static void list(auto& field, auto& request) {
    field("order", request.order);
    field("call", request.call);
    field("evaluation", request.evaluation);
  }
};

template <>
struct FieldsOf<host::OrderRequest> {
  static void list(auto& field, auto& request) { field("order", request.order); }
};

template <>
struct FieldsOf<host::WithdrawRequest> {
  static void list(auto& field, auto& request) {
    field("order", request.order);
    field("ref", request.ref);
  }
};

template <>
struct FieldsOf<host::WaitOrderRequest> {
  static void list(auto& field, auto& request) {
    field("order", request.order);
    field("ref", request.ref);
    field("until", request.until);
    field("timeout_s", request.timeout_s);
  }
};

template <>
struct FieldsOf<host::WaitCallRequest> {
  static void list(auto& field, auto& request) {
    field("order", request.order);
    field("call", request.call);
    field("timeout_s", request.timeout_s);
  }
};

template <>
struct FieldsOf<host::EvalRequest> {
  static void list(auto& field, auto& request) {
    field("code", request.code);
    field("name", request.name);
    field("timeout_s", request.timeout_s);
    field("asks", request.asks);
  }
};

template <>
struct FieldsOf<host::AnswerRequest> {
  static void list(auto& field, auto& request) {
    field("question", request.question);
    field("yes", request.yes);
  }
};

template <>
struct FieldsOf<host::CompleteRequest> {
  static void list(auto& field, auto& request) {
    field("code", request.code);
    field("cursor", request.cursor);
  }
};

template <>
struct FieldsOf<host::HelpRequest> {
  static void list(auto& field, auto& request) { field("name", request.name); }
};

template <>
struct FieldsOf<host::RoleRequest> {
  static void list(auto& field, auto& request) { field("role", request.role); }
};

template <>
struct FieldsOf<host::AttachRequest> {
  static void list(auto& field, auto& request) { field("from", request.from); }
};

template <>
struct FieldsOf<host::SubscribeRequest> {
  static void list(auto& field, auto& request) {
    field("topics", request.topics);
    field("since", request.since);
  }
};

template <>
struct FieldsOf<host::WaitAnswerRequest> {
  static void list(auto& field, auto& request) { field("text", request.text); }
};

template <>
struct FieldsOf<host::WaitStepRequest> {
  static void list(auto& field, auto& request) {
    field("step", request.step);
    field("timeout_s", request.timeout_s);
  }
};

template <>
struct FieldsOf<host::WaitEventRequest> {
  static void list(auto& field, auto& request) {
    field("event", request.event);
    field("timeout_s", request.timeout_s);
  }
};

template <>
struct FieldsOf<host::WaitLinesRequest> {
  static void list(auto& field, auto& request) { field("since", request.since); }
};

template <>
struct FieldsOf<host::WaitSecondsRequest> {
  static void list(auto& field, auto& request) { field("seconds", request.seconds); }
};

template <>
struct FieldsOf<host::RuleRequest> {
  static void list(auto& field, auto& request) { field("spec", request.spec); }
};

template <>
struct FieldsOf<host::RuleOffRequest> {
  static void list(auto& field, auto& request) { field("rule", request.rule); }
};

template <>
struct FieldsOf<host::JobOffRequest> {
  static void list(auto& field, auto& request) { field("job", request.job); }
};

template <>
struct FieldsOf<host::WaitRulesRequest> {
  static void list(auto& field, auto& request) {
    field("code", request.code);
    field("name", request.name);
    field("rules", request.rules);
  }
};

Result<void> read_json(const Json& json, RequestHead& head) {
  return read_fields(json, head);
}

Result<void> read_json(const Json& json, ChangeList& changes) {
  Json list = json;
  if (json.is_object()) {
    list = Json::array();
    for (const auto& [name, value] : json.items()) list.push_back({{"name", name}, {"value", value}});
  }
  auto order = order_from_json({{"changes", std::move(list)}});
  if (!order) return fields::wrong("{name: value} or a list of changes: " + order.error().message);
  changes.changes = std::move(order->changes);
  return {};
}

namespace host {
namespace {

/// Collects the names of a list of fields.
struct FieldNames {
  std::string text;
  template <class T>
  void operator()(const char* name, const T& /*value*/) {
    text += (text.empty() ? "" : " ") + std::string(name);
  }
};

bool is_nan(double seconds) {
  return std::isnan(seconds);
}
bool is_nan(const std::optional<double>& seconds) {
  return seconds && std::isnan(*seconds);
}

}  // namespace

template <class Request>
Result<Request> RequestFields<Request>::read(const Json& line) {
  Request request{};
  if (auto read = read_fields(line, request); !read) return tl::unexpected(read.error());
  if constexpr (requires { request.timeout_s; })
    if (is_nan(request.timeout_s))
      return fail(ErrorKind::usage, "field 'timeout_s' has to be a number of seconds");
  return request;
}

template <class Request>
std::string RequestFields<Request>::names() {
  FieldNames names;
  const Request request{};
  FieldsOf<Request>::list(names, request);
  return names.text;
}

template struct RequestFields<StacksRequest>;
template struct RequestFields<DropRequest>;
template struct RequestFields<GetRequest>;
template struct RequestFields<SetRequest>;
template struct RequestFields<CallRequest>;
template struct RequestFields<CancelRequest>;
template struct RequestFields<OrderRequest>;
template struct RequestFields<WithdrawRequest>;
template struct RequestFields<WaitOrderRequest>;
template struct RequestFields<WaitCallRequest>;
template struct RequestFields<EvalRequest>;
template struct RequestFields<AnswerRequest>;
template struct RequestFields<CompleteRequest>;
template struct RequestFields<HelpRequest>;
template struct RequestFields<RoleRequest>;
template struct RequestFields<AttachRequest>;
template struct RequestFields<SubscribeRequest>;
template struct RequestFields<WaitAnswerRequest>;
template struct RequestFields<WaitStepRequest>;
template struct RequestFields<WaitEventRequest>;
template struct RequestFields<WaitLinesRequest>;
template struct RequestFields<WaitSecondsRequest>;
template struct RequestFields<RuleRequest>;
template struct RequestFields<RuleOffRequest>;
template struct RequestFields<JobOffRequest>;
template struct RequestFields<WaitRulesRequest>;

}  // namespace host
}  // namespace footplate
