#include <array>
#include <string>

#include "console/host/api/operations.h"
#include "console/host/api/request_fields.h"

namespace footplate::host {
namespace {

namespace of = operations;

enum class Asker { client, script };

/// What reads the fields of an operation's request and runs it.
struct Handler {
  Result<void> (*run)(Api&, Request&);  ///< error (usage): a field of the wrong type; it hasn't run
  std::string (*fields)();              ///< that the request may have, with spaces between
};

template <auto operation>
constexpr Handler handler_of(void (*)(Api&, Request&)) {
  return {[](Api& api, Request& request) -> Result<void> {
            operation(api, request);
            return {};
          },
          [] { return std::string(); }};
}
template <auto operation, class Fields>
constexpr Handler handler_of(void (*)(Api&, Request&, const Fields&)) {
  return {[](Api& api, Request& request) -> Result<void> {
            return RequestFields<Fields>::read(request.line).map([&](const Fields& fields) {
              operation(api, request, fields);
            });
          },
          &RequestFields<Fields>::names};
}
template <auto operation>
inline constexpr Handler kHandled = handler_of<operation>(operation);

/// One operation of docs/protocol.md.
struct Operation {
  const char* for_client;  ///< its name in a client's requests; null: clients don't have it
  const char* for_script;  ///< its name in a script's requests; null: scripts don't have it
  Handler handler;
  Role role = Role::view;  ///< the least that may ask for it
  const char* doing = "";  ///< what it does, as the error says where the role is too low

  const char* name(Asker asker) const { return asker == Asker::client ? for_client : for_script; }
};

// clang-format off
constexpr Operation kOperations[] = {
    // client      script          handler                    role           doing
    {"ping",        nullptr,        kHandled<of::ping>},
    {"status",      "status",       kHandled<of::status>},
    {"comm_report", "wait_report",  kHandled<of::comm_report>},
    {"comm_dump",   "wait_dump",    kHandled<of::comm_dump>, Role::operate, "writing ledgers"},
    {"stacks",      "wait_stacks",  kHandled<of::stacks>},
    {"drop",        "wait_drop",    kHandled<of::drop>,     Role::admin,   "dropping a rank"},
    {"schema",      nullptr,        kHandled<of::schema>},
    {"get",         "settings",     kHandled<of::get>},
    {"pending",     "pending",      kHandled<of::pending>},
    {"set",         nullptr,        kHandled<of::set>},
    {"call",        nullptr,        kHandled<of::call>},
    {"cancel",      "cancel",       kHandled<of::cancel>,   Role::operate, "cancelling"},
    {"orders",      "orders",       kHandled<of::orders>},
    {"eval",        nullptr,        kHandled<of::eval>},
    {"answer",      nullptr,        kHandled<of::answer>},
    {"interrupt",   nullptr,        kHandled<of::interrupt>},
    {"complete",    nullptr,        kHandled<of::complete>},
    {"help",        nullptr,        kHandled<of::help>},
    {"role",        nullptr,        kHandled<of::role>},
    {"attach",      nullptr,        kHandled<of::attach>},
    {"subscribe",   nullptr,        kHandled<of::subscribe>},
    {"rules",       "rules",        kHandled<of::rules>},
    {"rule_off",    "rule_off",     kHandled<of::rule_off>, Role::operate, "switching a rule off"},
    {"jobs",        "jobs",         kHandled<of::jobs>},
    {"job_off",     "job_off",      kHandled<of::job_off>,  Role::admin,   "stopping a job"},
    {"store",       "store",        kHandled<of::store>},
    {"bye",         nullptr,        kHandled<of::bye>},
    {nullptr,       "order",        kHandled<of::order>},
    {nullptr,       "withdraw",     kHandled<of::withdraw>, Role::operate, "withdrawing an order"},
    {nullptr,       "metrics",      kHandled<of::metrics>},
    {nullptr,       "checkpoints",  kHandled<of::checkpoints>},
    {nullptr,       "journal",      kHandled<of::journal>},
    {nullptr,       "rule",         kHandled<of::rule>},
    {nullptr,       "wait_order",   kHandled<of::wait_order>},
    {nullptr,       "wait_answer",  kHandled<of::wait_answer>},
    {nullptr,       "wait_call",    kHandled<of::wait_call>},
    {nullptr,       "wait_step",    kHandled<of::wait_step>},
    {nullptr,       "wait_event",   kHandled<of::wait_event>},
    {nullptr,       "wait_lines",   kHandled<of::wait_lines>},
    {nullptr,       "wait_rules",   kHandled<of::wait_rules>},
    {nullptr,       "wait_seconds", kHandled<of::wait_seconds>},
};
// clang-format on

Result<void> check(const Operation& operation, Asker asker, const Request& request) {
  if (asker == Asker::client)
    if (auto good = check_fields(operation.for_client, request.line, operation.handler.fields()); !good)
      return good;
  if (request.client.role >= operation.role) return {};
  return fail(ErrorKind::refused, operation.doing +
                                      (" needs the role " + std::string(to_string(operation.role))) +
                                      "; this session has " + std::string(to_string(request.client.role)));
}

void dispatch(Api& api, Asker asker, const std::string& wanted, Request request) {
  std::string all;
  for (const Operation& operation : kOperations) {
    const char* name = operation.name(asker);
    if (name == nullptr) continue;
    all += std::string(" ") + name;
    if (wanted != name) continue;
    const Answer answer = request.answer;
    auto done = check(operation, asker, request);
    if (done) done = operation.handler.run(api, request);
    if (!done) answer(tl::unexpected(done.error()));
    return;
  }
  request.answer(fail(ErrorKind::usage, "unknown operation '" + wanted + "'; there are" + all));
}

}  // namespace

void answer_client(Api& api, Client& client, const std::string& line) {
  const auto message = parse_line(line);
  const bool object = message && message->is_object();
  RequestHead head;
  const auto good = object ? read_json(*message, head) : Result<void>();
  const auto answer = [&api, &client, id = head.id](Result<Json> value) {
    --client.open_requests;
    if (value)
      api.clients.send(client, {{"type", "result"}, {"id", id}, {"value", *std::move(value)}}, id);
    else
      api.clients.send_error(client, id, value.error());
  };
  ++client.open_requests;
  if (!message) return answer(tl::unexpected(message.error()));
  if (!object)
    return answer(fail(ErrorKind::usage, R"(a request is an object, as in {"id":1,"op":"status"})"));
  if (client.open_requests > static_cast<int>(api.host.options.limits.requests))
    return answer(fail(ErrorKind::refused, std::to_string(client.open_requests - 1) +
                                               " requests are open already; read their answers first"));
  if (!good) return answer(tl::unexpected(good.error()));
  dispatch(api, Asker::client, head.op, {client, head.id, *message, answer, nullptr});
}

void answer_script(Api& api, Client& client, const SessionRequest& request) {
  dispatch(api, Asker::script, request.op,
           {client, request.id, request.fields, script_answer(client, request.id),
            script_note(client, request.id)});
}

}  // namespace footplate::host
