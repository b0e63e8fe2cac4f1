#include <spdlog/spdlog.h>

#include "console/host/console.h"

// The Lua processes of clients.

namespace footplate::host {
namespace {

constexpr std::size_t kLuaUnread = 16U * 1024 * 1024;
constexpr std::chrono::milliseconds kSpareDelay{
    20};                                        ///< so that making the next one is not in the way of this one
constexpr std::chrono::seconds kSpareRetry{5};  ///< after a spare could not be started

}  // namespace

Json Console::lua_hello(const Client& client) const {
  return {{"type", "hello"},
          {"schema", view_.schema_json()},
          {"settings", view_.settings().to_json()},
          {"run", view_.run()},
          {"session", client.session},
          {"user", client.user},
          {"role", to_string(client.role)},
          {"limits", options_.limits.to_json()},
          {"kind", "session"}};
}

Result<std::unique_ptr<LuaProcess>> Console::fresh_process() {
  spare_due_ = now_ + kSpareDelay;
  if (spare_ && !spare_->ended()) return std::move(spare_);
  return LuaProcess::start(options_.lua_program, kLuaUnread, reaper_);
}

void Console::keep_spare() {
  if (spare_ || !view_.known() || now_ < spare_due_) return;
  auto process = LuaProcess::start(options_.lua_program, kLuaUnread, reaper_);
  if (process) {
    spare_ = *std::move(process);
    return;
  }
  spdlog::error("{}", process.error().message);
  spare_due_ = now_ + kSpareRetry;
}

/// What sends an answer or a note to the process that asked, if that is still there.
Answer Console::script_answer(Client& client, const char* type, const Json& id) {
  return [lua = client.lua.get(), generation = client.lua->generation(), type, id](Result<Json> answer) {
    if (lua->generation() != generation) return;
    Json line = {{"type", type}, {"id", id}};
    if (answer)
      line["value"] = *std::move(answer);
    else
      line["error"] = to_json(answer.error());
    if (to_line(line).size() > kMaxFrameBytes) {
      line.erase("value");
      line["error"] =
          to_json(Error{ErrorKind::failed, "the answer is longer than a line of " +
                                               std::to_string(kMaxFrameBytes >> 20) + " MiB; ask for less"});
    }
    lua->send(line);
  };
}

/// Starts the client's next chunk, if none is running.
void Console::next_eval(Client& client) {
  if (client.evals.empty() || client.gone || (client.lua && client.lua->busy())) return;
  const Json eval = std::move(client.evals.front());
  client.evals.pop_front();
  if (!client.lua) {
    LuaSession::Events events;
    events.request = [this, &client](const Json& message) {
      dispatch(kLuaOperations,
               {client, message, script_answer(client, "answer", message.value("id", Json()))});
    };
    events.output = [this, &client](const Json& message) { send(client, message); };
    events.ended = [this, &client](const Json& message) {
      waits_.forget_script(client.id);  // an interrupted chunk may leave one behind
      client.open_question = nullptr;
      --client.open_requests;
      send(client, message);
      next_eval(client);
    };
    client.lua = std::make_unique<LuaSession>(options_.limits, std::move(events));
  }
  if (!client.lua->has_process()) {
    auto process = fresh_process();
    if (!process) {
      --client.open_requests;
      return send(client, {{"type", "error"}, {"id", eval["id"]}, {"error", to_json(process.error())}});
    }
    client.lua->take(*std::move(process), lua_hello(client));
  }
  client.lua->eval(eval, now_, options_.limits.chunk_s);
}

}  // namespace footplate::host
