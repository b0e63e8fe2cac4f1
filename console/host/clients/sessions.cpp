#include "console/host/clients/sessions.h"

#include <spdlog/spdlog.h>

namespace footplate::host {
namespace {

constexpr std::size_t kLuaUnread = 16U * 1024 * 1024;
constexpr std::chrono::milliseconds kSpareDelay{
    20};                                        ///< so that making the next one is not in the way of this one
constexpr std::chrono::seconds kSpareRetry{5};  ///< after a spare could not be started

}  // namespace

SessionHello Sessions::hello(const Client& client) const {
  SessionHello hello;
  hello.schema = state_.view.schema_json();
  hello.settings = state_.view.settings().to_json();
  hello.run = state_.view.run();
  hello.session = client.session;
  hello.user = client.user;
  hello.role = to_string(client.role);
  hello.limits = state_.options.limits.of_session();
  return hello;
}

Result<std::unique_ptr<LuaProcess>> Sessions::process() {
  spare_due_ = state_.now + kSpareDelay;
  if (spare_ && !spare_->ended()) return std::move(spare_);
  return LuaProcess::start(state_.options.lua_program, kLuaUnread, reaper_);
}

void Sessions::keep_spare() {
  if (spare_ || !state_.view.known() || state_.now < spare_due_) return;
  auto process = LuaProcess::start(state_.options.lua_program, kLuaUnread, reaper_);
  if (process) {
    spare_ = *std::move(process);
    return;
  }
  spdlog::error("{}", process.error().message);
  spare_due_ = state_.now + kSpareRetry;
}

Answer script_answer(Client& client, std::uint64_t id) {
  return [lua = client.lua.get(), generation = client.lua->generation(), id](Result<Json> answer) {
    if (lua->generation() != generation) return;
    SessionAnswer line{id, std::move(answer)};
    if (to_line(to_json(ToSession(line))).size() > kMaxFrameBytes)
      line.value = fail(ErrorKind::failed, "the answer is longer than a line of " +
                                               std::to_string(kMaxFrameBytes >> 20) + " MiB; ask for less");
    lua->send(std::move(line));
  };
}

std::function<void(const OrderReport&)> script_note(Client& client, std::uint64_t id) {
  return [lua = client.lua.get(), generation = client.lua->generation(), id](const OrderReport& report) {
    if (lua->generation() == generation) lua->send(SessionNote{id, report});
  };
}

/// What it says goes to the client, and what it asks to the console.
void Sessions::make_lua(Client& client) {
  LuaSession::Events events;
  events.request = [this, &client](const SessionRequest& request) { ask_(client, request); };
  events.output = [this, &client](const ChunkOutput& output) {
    clients_.send(client, to_json(FromSession(output)), output.id);
  };
  events.ended = [this, &client](const ChunkEnd& end) {
    state_.waits.forget_script(client.id);  // an interrupted chunk may leave one behind
    client.open_question = nullptr;
    --client.open_requests;
    if (end)
      clients_.send(client, to_json(FromSession(*end)), end->id);
    else
      clients_.send(client, to_json(FromSession(static_cast<const ChunkError&>(end.error()))),
                    end.error().id);
    next_chunk(client);
  };
  client.lua = std::make_unique<LuaSession>(state_.options.limits, std::move(events));
}

void Sessions::next_chunk(Client& client) {
  if (client.evals.empty() || client.gone || (client.lua && client.lua->busy())) return;
  const EvalChunk eval = std::move(client.evals.front());
  client.evals.pop_front();
  if (!client.lua) make_lua(client);
  if (!client.lua->has_process()) {
    auto fresh = process();
    if (!fresh) {
      --client.open_requests;
      return clients_.send_error(client, eval.id, fresh.error());
    }
    client.lua->take(*std::move(fresh), hello(client));
  }
  client.lua->eval(eval, state_.now, state_.options.limits.chunk_s);
}

std::optional<Sessions::Clock::time_point> Sessions::deadline() const {
  std::optional<Clock::time_point> next;
  const auto consider = [&next](const std::optional<Clock::time_point>& time) {
    if (time && (!next || *time < *next)) next = time;
  };
  if (!spare_ && state_.view.known()) consider(spare_due_);
  for (const auto& client : clients_.all()) {
    if (client->lua) consider(client->lua->deadline());
    consider(client->drop_at);
  }
  return next;
}

void Sessions::on_time() {
  for (const auto& client : clients_.all())
    if (client->lua) client->lua->on_time(state_.now);
}

void Sessions::settings(const SettingsUpdate& update) {
  for (const auto& client : clients_.all())
    if (client->lua) client->lua->send(update);
}

std::vector<LuaSession*> Sessions::running() const {
  std::vector<LuaSession*> running;
  for (const auto& client : clients_.all())
    if (client->lua && client->lua->busy() && client->lua->has_process())
      running.push_back(client->lua.get());
  return running;
}

void Sessions::end(const Error& error) {
  for (const auto& client : clients_.all())
    if (client->lua) client->lua->end(error);
  spare_.reset();
}

}  // namespace footplate::host
