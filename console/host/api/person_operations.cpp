#include "console/host/api/operations.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "console/lua/reference/completion.h"
#include "console/lua/reference/function_docs.h"
#include "console/lua/reference/help.h"

namespace footplate::host::operations {
namespace {

constexpr std::size_t kLongestFrom = 200;
constexpr std::size_t kNameShown = 64;  ///< of a topic that there isn't

Result<void> check_topic(const std::string& topic) {
  static const std::vector<std::string> kTopics{"*",    "metrics", "order",  "call", "eval", "ckpt", "run",
                                                "rank", "warn",    "client", "job",  "rule", "nccl", "note"};
  if (std::ranges::find(kTopics, topic) != kTopics.end()) return {};
  std::string all;
  for (const auto& one : kTopics) all += (all.empty() ? "" : " ") + one;
  const std::string near = nearest(topic, kTopics);
  return fail(ErrorKind::usage, "there is no topic '" + topic.substr(0, kNameShown) + "'" +
                                    (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                    "; topics: " + all);
}

}  // namespace

void ping(Api& /*api*/, Request& request) {
  request.answer(Json::object());
}

void eval(Api& api, Request& request) {
  const std::string code = request.message.value("code", "");
  if (code.size() > static_cast<std::size_t>(api.host.options.limits.chunk_bytes))
    return request.answer(
        fail(ErrorKind::usage,
             "a chunk may have " + api.host.options.limits.to_json()["chunk_bytes"].dump() + " bytes"));
  request.client.evals.push_back({{"type", "eval"},
                                  {"id", request.message.value("id", Json())},
                                  {"code", code},
                                  {"name", request.message.value("name", "chunk")},
                                  {"timeout_s", request.message.value("timeout_s", 30.0)},
                                  {"asks", request.message.value("asks", false)}});
  api.sessions.next_chunk(request.client);  // answered by the session's result or error
}

void interrupt(Api& api, Request& request) {
  if (request.client.lua) request.client.lua->interrupt(api.host.now);
  request.answer(Json::object());
}

void answer(Api& /*api*/, Request& request) {
  Client& client = request.client;
  if (!client.open_question || request.message.value("question", std::uint64_t{0}) != client.questions)
    return request.answer(fail(ErrorKind::usage, "there is no such question, or it is answered"));
  std::exchange(client.open_question, nullptr)(Json{{"yes", request.message.value("yes", false)}});
  request.answer(Json::object());
}

void complete(Api& api, Request& request) {
  std::string code = request.message.value("code", "");
  if (const auto cursor = request.message.find("cursor"); cursor != request.message.end())
    code.resize(std::min(code.size(), cursor->get<std::size_t>()));
  request.answer(
      completions(api.host.view.schema(), api.host.view.settings(), compiled_function_docs(), code));
}

void help(Api& api, Request& request) {
  request.answer(Json{{"text", help_text(api.host.view.schema(), api.host.view.settings(),
                                         compiled_function_docs(), request.message.value("name", ""))}});
}

/// A session may only lower its role: what holds it back can't be undone by a script that it runs.
void role(Api& /*api*/, Request& request) {
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

void attach(Api& api, Request& request) {
  Client& client = request.client;
  client.attached_from = request.message.value("from", "").substr(0, kLongestFrom);
  api.clients.record(client, "attached");
  Json others = Json::array();
  for (const auto& other : api.clients.all())
    if (other->attached_from && other.get() != &client)
      others.push_back({{"session", other->session}, {"user", other->user}, {"from", *other->attached_from}});
  request.answer(Json{{"others", std::move(others)}});
}

void subscribe(Api& api, Request& request) {
  EventRing::Reader reader;
  for (const auto& topic : request.message.value("topics", std::vector<std::string>{"*"})) {
    if (const auto known = check_topic(topic); !known) return request.answer(tl::unexpected(known.error()));
    reader.topics.insert(topic);
  }
  const auto newest = api.host.ring.next_sequence();
  const auto since = std::min(request.message.value("since", newest), newest);
  reader.next = std::max(since, api.host.ring.oldest_sequence());
  request.answer(Json{{"sequence", reader.next}, {"lost", reader.next - since}});
  request.client.reader = std::move(reader);
}

void bye(Api& /*api*/, Request& request) {
  request.answer(Json::object());
  request.client.leaving = true;
}

}  // namespace footplate::host::operations
