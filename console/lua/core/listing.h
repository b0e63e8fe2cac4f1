#pragma once

#include <lua.hpp>
#include <string>
#include <vector>

#include "console/lua/core/convert.h"
#include "protocol/json.h"

namespace footplate::lua {

/// Field of a listing's metatable where its data is a list, which an empty table doesn't show.
constexpr const char* kListing = "footplate.listing";

/// A __tostring: what `contents` pushes, as people see it.
template <int (*contents)(lua_State*)>
int text_of_contents(lua_State* state) {
  contents(state);
  push_text(state, render(state, -1));
  return 1;
}

/// Pushes data that a script can walk and that prints as `text`.
void push_listing(lua_State* state, const Json& data, const std::string& text);

/// What a script gets of a list of messages.
template <class Message>
Json list_of(const std::vector<Message>& messages) {
  Json list = Json::array();
  for (const Message& message : messages) list.push_back(to_json(message));
  return list;
}

/// The three values of __pairs for the list {key, value, key, value, …} on top of the stack, which is popped.
int push_pairs(lua_State* state);

/// The same for what `push` pushes, a key and a value, of each of `items`, in their order.
template <class Items, class Push>
int push_pairs(lua_State* state, const Items& items, const Push& push) {
  lua_newtable(state);
  lua_Integer count = 0;
  for (const auto& item : items) {
    push(item);
    lua_rawseti(state, -3, count + 2);
    lua_rawseti(state, -2, count + 1);
    count += 2;
  }
  return push_pairs(state);
}

/// The number in `what`[number], "orders[17]"; an error that says how it is used where it is none.
lua_Integer number_in_brackets(lua_State* state, const char* example);

/// A table's text as a value is shown: without its last newline.
std::string without_newline(std::string text);

}  // namespace footplate::lua
