#pragma once

#include <cstddef>
#include <lua.hpp>
#include <optional>
#include <string>
#include <vector>

#include "protocol/order.h"
#include "protocol/schema.h"

namespace footplate {

/// What at() of a journal fills: one order for each call, with its step and the line it is on in `lines`.
struct Recording {
  const Schema& schema;
  std::vector<Order> orders;
  std::vector<int> lines;
  /// What such an order did with a setting or an action that the task doesn't declare any more. It is left
  /// out of the order.
  struct Gone {
    std::size_t order = 0;  ///< index in `orders`
    std::string name;
    std::optional<Json> value;  ///< of a setting; nothing: the action was called
  };
  std::vector<Gone> gone = {};
  bool inside = false;  ///< the function of at() runs: set{} and actions belong to the last order
};

/// Puts the journal's words into a state: at, set, and groups whose actions record. `recording` outlives it.
void install_recorder(lua_State* state, Recording& recording);

}  // namespace footplate
