#include "console/host/api/operations.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "console/lua/reference/completion.h"
#include "console/lua/reference/function_docs.h"
#include "console/lua/reference/help.h"
#include "run_files/checkpoint_folders.h"

namespace footplate::host::operations {
namespace {

constexpr std::size_t kLongestFrom = 200;
constexpr std::size_t kNameShown = 64;  ///< of a topic that there isn't

constexpr std::size_t kMostTags = 100;

/// Metrics that were logged, tags of checkpoints by the names of their folders, what is in store.
CompletionNames names_of(const HostState& host) {
  CompletionNames names;
  for (const auto& [name, value] : host.view.metrics().values.items())
    if (name.find('/') != std::string::npos) names.metrics.push_back(name);
  for (const auto& [name, value] : host.view.store().items()) names.stored.push_back(name);
  std::set<std::string> tags;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator
           entry(checkpoints_folder(host.options.run_directory), error),
       end;
       !error && entry != end && tags.size() < kMostTags; entry.increment(error)) {
    if (entry.depth() > 0) entry.disable_recursion_pending();
    const auto folder = parse_folder_name(entry->path().filename().string());
    if (folder && !folder->replaced && !folder->tag.empty()) tags.insert(folder->tag);
  }
  names.tags.assign(tags.begin(), tags.end());
  return names;
}

/// "*": nothing, which is all of them. Error (usage): there is no such topic.
Result<std::optional<Topic>> topic_named(const std::string& word) {
  const auto topic = from_word<Topic>(word);
  if (topic && *topic != Topic::end) return topic;
  std::vector<std::string> known{"*"};
  for (const auto& [one, its] : EnumWords<Topic>::kAll)
    if (one != Topic::end) known.emplace_back(its);
  if (word == known.front()) return std::nullopt;
  std::string all;
  for (const auto& one : known) all += (all.empty() ? "" : " ") + one;
  const std::string near = nearest(word, known);
  return fail(ErrorKind::usage, "there is no topic '" + word.substr(0, kNameShown) + "'" +
                                    (near.empty() ? "" : "; did you mean '" + near + "'?") +
                                    "; topics: " + all);
}

}  // namespace

void ping(Api& /*api*/, Request& request) {
  request.answer(Json::object());
}

void eval(Api& api, Request& request, const EvalRequest& fields) {
  const auto most = static_cast<std::size_t>(api.host.options.limits.chunk_bytes);
  if (fields.code.size() > most)
    return request.answer(fail(ErrorKind::usage, "a chunk may have " + std::to_string(most) + " bytes"));
  request.client.evals.push_back({request.id, fields.code, fields.name, fields.timeout_s, fields.asks});
  api.sessions.next_chunk(request.client);  // answered by the session's result or error
}

void interrupt(Api& api, Request& request) {
  if (request.client.lua) request.client.lua->interrupt(api.host.now);
  request.answer(Json::object());
}

void answer(Api& /*api*/, Request& request, const AnswerRequest& fields) {
  Client& client = request.client;
  if (!client.open_question || fields.question != client.questions)
    return request.answer(fail(ErrorKind::usage, "there is no such question, or it is answered"));
  std::exchange(client.open_question, nullptr)(fields.yes);
  request.answer(Json::object());
}

void complete(Api& api, Request& request, const CompleteRequest& fields) {
  const std::string code = fields.code.substr(0, fields.cursor.value_or(fields.code.size()));
  request.answer(completions(api.host.view.schema(), api.host.view.settings(), compiled_function_docs(), code,
                             names_of(api.host)));
}

void help(Api& api, Request& request, const HelpRequest& fields) {
  request.answer(Json{{"text", help_text(api.host.view.schema(), api.host.view.settings(),
                                         compiled_function_docs(), fields.name)}});
}

/// A session may only lower its role: what holds it back can't be undone by a script that it runs.
void role(Api& /*api*/, Request& request, const RoleRequest& fields) {
  Client& client = request.client;
  const Role wanted = fields.role.value_or(client.role);
  if (wanted > client.role)
    return request.answer(fail(ErrorKind::refused, "a session can only lower its role; this one has " +
                                                       std::string(to_string(client.role))));
  client.role = wanted;
  request.answer(Json{{"role", to_string(client.role)}});
}

void attach(Api& api, Request& request, const AttachRequest& fields) {
  Client& client = request.client;
  if (!client.attached_from) {
    client.attached_from = fields.from.substr(0, kLongestFrom);
    api.clients.record(client, ClientState::attached);
  }
  Json others = Json::array();
  for (const auto& other : api.clients.all())
    if (other->attached_from && other.get() != &client)
      others.push_back({{"session", other->session}, {"user", other->user}, {"from", *other->attached_from}});
  request.answer(Json{{"others", std::move(others)}});
}

void subscribe(Api& api, Request& request, const SubscribeRequest& fields) {
  EventRing::Reader reader;
  bool all = false;
  std::set<Topic> topics;
  for (const std::string& word : fields.topics) {
    const auto topic = topic_named(word);
    if (!topic) return request.answer(tl::unexpected(topic.error()));
    all = all || !*topic;
    if (*topic) topics.insert(**topic);
  }
  if (!all) reader.topics = std::move(topics);
  const auto newest = api.host.ring.next_sequence();
  const auto since = std::min(fields.since.value_or(newest), newest);
  reader.next = std::max(since, api.host.ring.oldest_sequence());
  request.answer(Json{{"sequence", reader.next}, {"lost", reader.next - since}});
  request.client.reader = std::move(reader);
}

void bye(Api& /*api*/, Request& request) {
  request.answer(Json::object());
  request.client.leaving = true;
}

}  // namespace footplate::host::operations
