#include "console/host/console.h"
#include "console/lua/reference/completion.h"
#include "console/lua/reference/help.h"

// What people at a prompt need besides a chunk's evaluation: names, help, their role, and that they are
// there.

namespace footplate::host {
namespace {

constexpr std::size_t kLongestFrom = 200;

}  // namespace

void Console::op_complete(Request& request) {
  std::string code = request.message.value("code", "");
  if (const auto cursor = request.message.find("cursor"); cursor != request.message.end())
    code.resize(std::min(code.size(), cursor->get<std::size_t>()));
  request.answer(completions(view_.schema(), view_.settings(), compiled_function_docs(), code));
}

void Console::op_help(Request& request) {
  request.answer(Json{{"text", help_text(view_.schema(), view_.settings(), compiled_function_docs(),
                                         request.message.value("name", ""))}});
}

/// A session may only lower its role: what holds it back can't be undone by a script that it runs.
void Console::op_role(Request& request) {
  Client& client = request.client;
  const std::string wanted = request.message.value("role", std::string(to_string(client.role)));
  const auto role = role_from_string(wanted);
  if (!role) return request.answer(tl::unexpected(role.error()));
  if (*role > client.role)
    return request.answer(fail(ErrorKind::refused, "a session can only lower its role; this one has " +
                                                       std::string(to_string(client.role))));
  client.role = *role;
  request.answer(Json{{"role", to_string(client.role)}});
}

void Console::op_attach(Request& request) {
  Client& client = request.client;
  client.attached_from = request.message.value("from", "").substr(0, kLongestFrom);
  record_client(client, "attached");
  Json others = Json::array();
  for (const auto& other : clients_)
    if (other->attached_from && other.get() != &client)
      others.push_back({{"session", other->session}, {"user", other->user}, {"from", *other->attached_from}});
  request.answer(Json{{"others", std::move(others)}});
}

/// A chunk's question to the person at its client; only a chunk whose `eval` said that there is one asks.
void Console::op_wait_answer(Request& request) {
  Client& client = request.client;
  client.open_question = request.answer;
  send(client,
       {{"type", "question"}, {"question", ++client.questions}, {"text", request.message.value("text", "")}});
}

void Console::op_answer(Request& request) {
  Client& client = request.client;
  if (!client.open_question || request.message.value("question", std::uint64_t{0}) != client.questions)
    return request.answer(fail(ErrorKind::usage, "there is no such question, or it is answered"));
  std::exchange(client.open_question, nullptr)(Json{{"yes", request.message.value("yes", false)}});
  request.answer(Json::object());
}

/// By way of rank 0, which keeps the run's records.
void Console::record_client(const Client& client, const char* state) {
  to_rank({{"type", "publish"},
           {"topic", "client"},
           {"data",
            {{"state", state},
             {"user", client.user},
             {"session", client.session},
             {"from", *client.attached_from}}}});
}

}  // namespace footplate::host
