#pragma once

#include <lua.hpp>
#include <stdexcept>
#include <vector>

#include "protocol/order.h"
#include "protocol/schema.h"

namespace footplate {

/// What at() of a journal fills: one order for each call, with its step and the line it is on in `lines`.
struct RecorderTarget {
  const Schema& schema;
  std::vector<Order> orders;
  std::vector<int> lines;
  bool recording = false;  ///< inside the function of at(): set{} and actions belong to the last order
};

/// Puts the journal's words into a state: at, set, and groups whose actions record. `target` outlives it.
void install_recorder(lua_State* lua, RecorderTarget& target);

}  // namespace footplate
