#include <array>
#include <string>

#include "console/host/api/operations.h"
#include "console/host/api/request_fields.h"

namespace footplate::host {
namespace {

namespace of = operations;

enum class Asker { client, script };

/// One operation of docs/protocol.md.
struct Operation {
  const char* for_client;  ///< its name in a client's requests; null: clients don't have it
  const char* for_script;  ///< its name in a script's requests; null: scripts don't have it
  void (*run)(Api&, Request&);
  Role role = Role::view;   ///< the least that may ask for it
  const char* doing = "";   ///< what it does, as the error says where the role is too low
  const char* fields = "";  ///< a client's request may have beside id and op, with spaces between

  const char* name(Asker asker) const { return asker == Asker::client ? for_client : for_script; }
};

// clang-format off
constexpr Operation kOperations[] = {
    // client      script          handler           role           doing                   fields
    {"ping",        nullptr,        of::ping},
    {"status",      "status",       of::status},
    {"comm_report", "comm_report",  of::comm_report},
    {"stacks",      "stacks",       of::stacks,       Role::view,    "",                     "rank"},
    {"drop",        "wait_drop",    of::drop,         Role::admin,   "dropping a rank",      "rank"},
    {"schema",      nullptr,        of::schema},
    {"get",         "settings",     of::get,          Role::view,    "",                     "names"},
    {"pending",     "pending",      of::pending},
    {"set",         nullptr,        of::set,          Role::view,    "",                     "changes at_step timeout_s"},
    {"call",        nullptr,        of::call,         Role::view,    "",                     "action arguments at_step wait timeout_s"},
    {"cancel",      "cancel",       of::cancel,       Role::operate, "cancelling",           "order call evaluation"},
    {"orders",      "orders",       of::orders},
    {"eval",        nullptr,        of::eval,         Role::view,    "",                     "code name timeout_s asks"},
    {"answer",      nullptr,        of::answer,       Role::view,    "",                     "question yes"},
    {"interrupt",   nullptr,        of::interrupt},
    {"complete",    nullptr,        of::complete,     Role::view,    "",                     "code cursor"},
    {"help",        nullptr,        of::help,         Role::view,    "",                     "name"},
    {"role",        nullptr,        of::role,         Role::view,    "",                     "role"},
    {"attach",      nullptr,        of::attach,       Role::view,    "",                     "from"},
    {"subscribe",   nullptr,        of::subscribe,    Role::view,    "",                     "topics since"},
    {"rules",       "rules",        of::rules},
    {"rule_off",    "rule_off",     of::rule_off,     Role::operate, "switching a rule off", "rule"},
    {"jobs",        "jobs",         of::jobs},
    {"job_off",     "job_off",      of::job_off,      Role::admin,   "stopping a job",       "job"},
    {"store",       "store",        of::store},
    {"bye",         nullptr,        of::bye},
    {nullptr,       "order",        of::order},
    {nullptr,       "withdraw",     of::withdraw,     Role::operate, "withdrawing an order"},
    {nullptr,       "metrics",      of::metrics},
    {nullptr,       "journal",      of::journal},
    {nullptr,       "rule",         of::rule},
    {nullptr,       "wait_order",   of::wait_order},
    {nullptr,       "wait_answer",  of::wait_answer},
    {nullptr,       "wait_call",    of::wait_call},
    {nullptr,       "wait_step",    of::wait_step},
    {nullptr,       "wait_event",   of::wait_event},
    {nullptr,       "wait_lines",   of::wait_lines},
    {nullptr,       "wait_rules",   of::wait_rules},
    {nullptr,       "wait_seconds", of::wait_seconds},
};
// clang-format on

Result<void> check(const Operation& operation, Asker asker, const Request& request) {
  if (asker == Asker::client)
    if (auto good = check_fields(request.message, operation.fields); !good) return good;
  if (request.client.role >= operation.role) return {};
  return fail(ErrorKind::refused, operation.doing +
                                      (" needs the role " + std::string(to_string(operation.role))) +
                                      "; this session has " + std::string(to_string(request.client.role)));
}

void dispatch(Api& api, Asker asker, Request request) {
  const Answer answer = request.answer;
  try {
    const std::string wanted = request.message.value("op", "");
    std::string all;
    for (const Operation& operation : kOperations) {
      const char* name = operation.name(asker);
      if (name == nullptr) continue;
      all += std::string(" ") + name;
      if (wanted != name) continue;
      if (auto good = check(operation, asker, request); !good) return answer(tl::unexpected(good.error()));
      return operation.run(api, request);
    }
    answer(fail(ErrorKind::usage, "unknown operation '" + wanted + "'; there are" + all));
  } catch (const Json::exception&) {
    answer(fail(ErrorKind::usage, "a field of this request has the wrong type; docs/protocol.md has them"));
  }
}

}  // namespace

void answer_client(Api& api, Client& client, const std::string& line) {
  auto message = parse_line(line);
  const bool object = message && message->is_object();
  const Json id = object ? message->value("id", Json()) : Json();
  const auto answer = [&api, &client, id](Result<Json> value) {
    --client.open_requests;
    if (value)
      api.clients.send(client, {{"type", "result"}, {"id", id}, {"value", *std::move(value)}});
    else
      api.clients.send(client, {{"type", "error"}, {"id", id}, {"error", to_json(value.error())}});
  };
  ++client.open_requests;
  if (!message) return answer(tl::unexpected(message.error()));
  if (!object)
    return answer(fail(ErrorKind::usage, R"(a request is an object, as in {"id":1,"op":"status"})"));
  if (client.open_requests > static_cast<int>(api.host.options.limits.requests))
    return answer(fail(ErrorKind::refused, std::to_string(client.open_requests - 1) +
                                               " requests are open already; read their answers first"));
  dispatch(api, Asker::client, {client, *message, answer});
}

void answer_script(Api& api, Client& client, const Json& message) {
  dispatch(api, Asker::script,
           {client, message, script_answer(client, "answer", message.value("id", Json()))});
}

}  // namespace footplate::host
