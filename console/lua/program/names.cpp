#include "console/lua/program/names.h"

#include "console/lua/api/api.h"
#include "console/lua/session/session.h"

namespace footplate::lua {

void open_names(lua_State* state, int own, int environment) {
  open_groups(state, own);
  open_orders(state, own);
  open_rules(state, own);
  open_jobs(state, own);
  open_functions(state, own);
  open_views(state, own);
  open_store(state, own);
  if (session_of(state).greeting().trusted()) open_trusted(state, own, environment);
}

}  // namespace footplate::lua
