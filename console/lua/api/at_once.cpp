#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/session/session.h"

// What acts at once. comm.drop(rank) kills a rank that is stuck: no order, which that rank would have to
// agree to. eval.cancel() gives up the evaluation that is under way: an order would apply after it.

namespace footplate::lua {
namespace {

int comm_drop(lua_State* state) {
  Session& session = session_of(state);
  const lua_Integer rank = luaL_checkinteger(state, 1);
  const bool forced =
      lua_istable(state, 2) && lua_getfield(state, 2, "force") != LUA_TNIL && lua_toboolean(state, -1) != 0;
  if (session.activity().mode == Activity::Mode::registering) return 0;
  session.orders().commit();
  if (!forced)
    session.orders().confirm("comm.drop(" + std::to_string(rank) +
                             ") kills that rank; the others go on with fewer, or end (comm.on_loss)");
  {
    const Waiting waiting(session.activity().clock);
    session.ask(request::DropRank{rank});
  }
  session.talk("rank " + std::to_string(rank) + " is gone");
  return 0;
}

int eval_cancel(lua_State* state) {
  Session& session = session_of(state);
  if (session.activity().mode == Activity::Mode::registering) return 0;
  session.orders().commit();
  const auto status = session.look(request::Status{});
  if (status.state != RunState::evaluating && !status.evaluating_step) {
    lua_pushboolean(state, 0);
    lua_pushliteral(state, "no evaluation is under way");
    return 2;
  }
  session.ask(request::CancelEvaluation{});
  lua_pushboolean(state, 1);
  return 1;
}

constexpr Registration kAtOnceFunctions[] = {
    {.doc = {.name = "eval.cancel",
             .role = Role::operate,
             .example = "eval.cancel()",
             .help = "gives up the evaluation that is under way, whoever asked for it; true, or false and "
                     "why there was nothing to cancel"},
     .handler = bound<eval_cancel>},
    {.doc = {.name = "comm.drop",
             .role = Role::admin,
             .example = "comm.drop(3)",
             .help = "kills rank 3, which is stuck; the others go on with fewer (comm.on_loss). { force = "
                     "true } as a second argument: without a question"},
     .handler = bound<comm_drop>},
};

}  // namespace

std::span<const Registration> at_once_functions() {
  return kAtOnceFunctions;
}

}  // namespace footplate::lua
