#include "console/lua/session/requests_json.h"

#include <type_traits>

#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<lua::request::SendOrder> {
  static void list(auto& field, auto& request) { field("order", request.order); }
};

template <>
struct FieldsOf<lua::request::OrderKey> {
  static void list(auto& field, auto& request) {
    field.unless_empty("order", request.order);
    field.unless_empty("ref", request.ref);
  }
};

template <>
struct FieldsOf<lua::request::WaitOrder> {
  static void list(auto& field, auto& request) {
    FieldsOf<lua::request::OrderKey>::list(field, request.key);
    field("until", request.until);
    field("timeout_s", request.timeout_s);
  }
};

template <>
struct FieldsOf<lua::request::Withdraw> {
  static void list(auto& field, auto& request) { FieldsOf<lua::request::OrderKey>::list(field, request.key); }
};

template <>
struct FieldsOf<lua::request::WaitCall> {
  static void list(auto& field, auto& request) {
    field("order", request.order);
    field("call", request.call);
    field("timeout_s", request.timeout_s);
  }
};

template <>
struct FieldsOf<lua::request::CancelCall> {
  static void list(auto& field, auto& request) {
    field("order", request.order);
    field("call", request.call);
  }
};

template <>
struct FieldsOf<lua::request::CancelEvaluation> {
  static void list(auto& field, auto& request) { field("evaluation", request.evaluation); }
};

template <>
struct FieldsOf<lua::request::DropRank> {
  static void list(auto& field, auto& request) { field("rank", request.rank); }
};

template <>
struct FieldsOf<lua::request::AskPerson> {
  static void list(auto& field, auto& request) { field("text", request.text); }
};

template <>
struct FieldsOf<lua::request::WaitStep> {
  static void list(auto& field, auto& request) {
    field("step", request.step);
    field("timeout_s", request.timeout_s);
  }
};

template <>
struct FieldsOf<lua::request::WaitEvent> {
  static void list(auto& field, auto& request) {
    field("event", request.event);
    field("timeout_s", request.timeout_s);
  }
};

template <>
struct FieldsOf<lua::request::WaitSeconds> {
  static void list(auto& field, auto& request) { field("seconds", request.seconds); }
};

template <>
struct FieldsOf<lua::request::WaitLines> {
  static void list(auto& field, auto& request) { field("since", request.since); }
};

template <>
struct FieldsOf<lua::request::RegisterRule> {
  static void list(auto& field, auto& request) { field("spec", request.spec); }
};

template <>
struct FieldsOf<lua::request::RegisterRules> {
  static void list(auto& field, auto& request) {
    field("code", request.code);
    field("name", request.name);
    field("rules", request.rules);
  }
};

template <>
struct FieldsOf<lua::request::SwitchRuleOff> {
  static void list(auto& field, auto& request) { field("rule", request.rule); }
};

template <>
struct FieldsOf<lua::request::StopJob> {
  static void list(auto& field, auto& request) { field("job", request.job); }
};

template <>
struct FieldsOf<lua::request::Stacks> {
  static void list(auto& field, auto& request) { field("rank", request.rank); }
};

template <>
struct FieldsOf<lua::request::SettingsNow> {
  static void list(auto& field, auto& request) { field("names", request.names); }
};

}  // namespace footplate

namespace footplate::lua::request {

template <class Request>
Json fields_of(const Request& request) {
  if constexpr (std::is_empty_v<Request>)
    return Json::object();
  else
    return write_fields(request);
}

template Json fields_of(const Status&);
template Json fields_of(const Orders&);
template Json fields_of(const Rules&);
template Json fields_of(const Jobs&);
template Json fields_of(const Pending&);
template Json fields_of(const SettingsNow&);
template Json fields_of(const Metrics&);
template Json fields_of(const Store&);
template Json fields_of(const Journal&);
template Json fields_of(const Checkpoints&);
template Json fields_of(const CommReport&);
template Json fields_of(const DumpLedgers&);
template Json fields_of(const SendOrder&);
template Json fields_of(const WaitOrder&);
template Json fields_of(const Withdraw&);
template Json fields_of(const WaitCall&);
template Json fields_of(const CancelCall&);
template Json fields_of(const CancelEvaluation&);
template Json fields_of(const DropRank&);
template Json fields_of(const AskPerson&);
template Json fields_of(const WaitStep&);
template Json fields_of(const WaitEvent&);
template Json fields_of(const WaitSeconds&);
template Json fields_of(const WaitLines&);
template Json fields_of(const RegisterRule&);
template Json fields_of(const RegisterRules&);
template Json fields_of(const SwitchRuleOff&);
template Json fields_of(const StopJob&);
template Json fields_of(const Stacks&);

}  // namespace footplate::lua::request
