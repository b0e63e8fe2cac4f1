#pragma once

#include <lua.hpp>
#include <vector>

#include "protocol/order.h"
#include "protocol/schema.h"

namespace footplate {

/// What at() of a journal fills: one order for each call, with its step and the line it is on in `lines`.
struct Recording {
  const Schema& schema;
  std::vector<Order> orders;
  std::vector<int> lines;
  bool inside = false;  ///< the function of at() runs: set{} and actions belong to the last order
};

/// Puts the journal's words into a state: at, set, and groups whose actions record. `recording` outlives it.
void install_recorder(lua_State* state, Recording& recording);

}  // namespace footplate
