#include "console/lua/core/convert.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "console/lua/core/bind.h"
#include "console/lua/core/listing.h"
#include "protocol/schema.h"
#include "protocol/words.h"

namespace footplate::lua {
namespace {

constexpr const char* kList = "footplate.list";  ///< a list from JSON, so that an empty one stays a list
constexpr const char* kFixedList = "footplate.fixed";  ///< key in a read-only list's metatable: its values
constexpr int kMaxDepth = 32;
constexpr lua_Unsigned kLongestList = 1000;  ///< values of one setting: more than any has
constexpr std::size_t kMaxEntries = 100'000;
constexpr std::size_t kMaxBytes = 256U * 1024;  ///< a message has 1 MiB, and JSON may need six bytes for one
constexpr std::size_t kMaxLine = 100;           ///< columns a table may take on one line
constexpr std::size_t kMaxText = 256U * 1024;   ///< of a rendered value
constexpr std::size_t kBetween = 2;             ///< bytes between two entries of a table, at least

/// Where the value at the top of the stack is a read-only list, replaces it by its values.
void unwrap(lua_State* state) {
  if (luaL_getmetafield(state, -1, kFixedList) != LUA_TNIL) lua_remove(state, -2);
}

/// Whether the value at `index` is one of 1 … length.
bool is_place(lua_State* state, int index, lua_Integer length) {
  return lua_isinteger(state, index) && lua_tointeger(state, index) >= 1 &&
         lua_tointeger(state, index) <= length;
}

/// Number of entries if the table at `index` is a list (keys 1…n only), else -1.
lua_Integer list_length(lua_State* state, int index) {
  const auto length = static_cast<lua_Integer>(lua_rawlen(state, index));
  lua_Integer entries = 0;
  for (lua_pushnil(state); lua_next(state, index) != 0; lua_pop(state, 1)) {
    if (++entries > length || !is_place(state, -2, length)) {
      lua_pop(state, 2);
      return -1;
    }
  }
  if (entries > 0) return entries == length ? length : -1;
  const int top = lua_gettop(state);
  const bool known_list = lua_getmetatable(state, index) != 0 &&
                          ((luaL_getmetatable(state, kList), lua_rawequal(state, -1, -2) != 0) ||
                           luaL_getmetafield(state, index, kListing) != LUA_TNIL);
  lua_settop(state, top);
  return known_list ? 0 : -1;
}

std::string key_text(lua_State* state, int index) {
  lua_pushvalue(state, index);  // a copy: lua_tolstring would change a number key and confuse lua_next
  std::size_t size = 0;
  const char* text = luaL_tolstring(state, -1, &size);
  std::string result(text, size);
  lua_pop(state, 2);
  return result;
}

/// What one conversion may still take.
struct Budget {
  std::size_t entries = kMaxEntries;
  std::size_t bytes = kMaxBytes;  ///< of strings
};

void spend(std::size_t& budget, std::size_t amount, std::size_t all, const char* unit) {
  if (amount > budget)
    throw ScriptError("a value with more than " + std::to_string(all) + unit + " can't leave the script");
  budget -= amount;
}

std::string bounded_text(lua_State* state, int index, Budget& budget) {
  std::string text = key_text(state, index);
  spend(budget.bytes, text.size(), kMaxBytes, " bytes of text");
  return text;
}

Json convert(lua_State* state, int index, int depth, Budget& budget);

Json convert_table(lua_State* state, int depth, Budget& budget) {
  if (depth > kMaxDepth)
    throw ScriptError("a table nested deeper than " + std::to_string(kMaxDepth) +
                      " levels can't leave the script");
  luaL_checkstack(state, 8, "value nested too deeply");
  unwrap(state);
  const int table = lua_gettop(state);
  const lua_Integer length = list_length(state, table);
  Json json = length >= 0 ? Json::array() : Json::object();
  for (lua_Integer i = 1; i <= length; ++i) {
    lua_rawgeti(state, table, i);
    json.push_back(convert(state, lua_gettop(state), depth, budget));
    lua_pop(state, 1);
  }
  if (length < 0) {
    for (lua_pushnil(state); lua_next(state, table) != 0; lua_pop(state, 1)) {
      const std::string key = bounded_text(state, -2, budget);
      json[key] = convert(state, lua_gettop(state), depth, budget);
    }
  }
  return json;
}

Json convert(lua_State* state, int index, int depth, Budget& budget) {
  spend(budget.entries, 1, kMaxEntries, " entries");
  switch (lua_type(state, index)) {
    case LUA_TNIL:
      return nullptr;
    case LUA_TBOOLEAN:
      return lua_toboolean(state, index) != 0;
    case LUA_TNUMBER:
      if (lua_isinteger(state, index)) return static_cast<std::int64_t>(lua_tointeger(state, index));
      return number_to_json(lua_tonumber(state, index));
    case LUA_TTABLE: {
      lua_pushvalue(state, index);
      Json json = convert_table(state, depth + 1, budget);
      lua_pop(state, 1);
      return json;
    }
    case LUA_TUSERDATA:
      // Handles and groups say what they are as data through __json.
      if (luaL_callmeta(state, index, "__json") != 0) {
        Json json = convert(state, lua_gettop(state), depth + 1, budget);
        lua_pop(state, 1);
        return json;
      }
      return bounded_text(state, index, budget);
    default:
      return bounded_text(state, index, budget);
  }
}

/// In a table six digits are enough to read; the data has all of them.
std::string number_text(lua_State* state, int index, int depth) {
  if (lua_isinteger(state, index)) return std::to_string(lua_tointeger(state, index));
  if (depth == 0) return shortest(lua_tonumber(state, index));
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", lua_tonumber(state, index));
  return text.data();
}

bool is_name(const std::string& text) {
  if (text.empty() || (text[0] >= '0' && text[0] <= '9')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

/// What a value is for people; nested strings are quoted.
class Renderer {
 public:
  explicit Renderer(lua_State* state) : state_(state) {}

  std::string nested(int index, int depth) {
    switch (lua_type(state_, index)) {
      case LUA_TNUMBER:
        return spent(number_text(state_, index, depth));
      case LUA_TSTRING: {
        std::size_t size = 0;
        const char* text = lua_tolstring(state_, index, &size);
        return spent(to_text(Value(std::string(text, size))));
      }
      case LUA_TTABLE:
        if (luaL_getmetafield(state_, index, "__tostring") == LUA_TNIL) return table(index, depth);
        lua_pop(state_, 1);
        break;
      default:
        break;
    }
    return spent(key_text(state_, index));
  }

 private:
  std::string spent(std::string text) {
    used_ += text.size();
    return text;
  }

  std::string table(int index, int depth) {
    if (depth > 8 || used_ > kMaxText) return spent("{…}");
    luaL_checkstack(state_, 8, "value nested too deeply");
    lua_pushvalue(state_, index);
    unwrap(state_);
    const std::vector<std::string> parts = entries(lua_gettop(state_), depth);
    lua_pop(state_, 1);
    if (parts.empty()) return "{}";
    std::size_t width = 2 * static_cast<std::size_t>(depth) + 4;
    bool short_enough = true;
    for (const auto& part : parts) {
      width += part.size() + 2;
      short_enough = short_enough && part.find('\n') == std::string::npos;
    }
    if (short_enough && width <= kMaxLine) return "{ " + joined(parts, ", ") + " }";
    const std::string indent(2 * static_cast<std::size_t>(depth), ' ');
    return "{\n" + indent + "  " + joined(parts, ",\n" + indent + "  ") + "\n" + indent + "}";
  }

  std::vector<std::string> entries(int table, int depth) {
    std::vector<std::string> parts;
    const lua_Integer length = list_length(state_, table);
    for (lua_Integer i = 1; i <= length && used_ <= kMaxText; ++i) {
      used_ += kBetween;
      lua_rawgeti(state_, table, i);
      parts.push_back(nested(lua_gettop(state_), depth + 1));
      lua_pop(state_, 1);
    }
    if (length >= 0) return parts;
    for (lua_pushnil(state_); lua_next(state_, table) != 0; lua_pop(state_, 1)) {
      used_ += kBetween;
      const std::string key = key_text(state_, -2);
      const std::string name =
          is_name(key) ? spent(key) : "[" + nested(lua_absindex(state_, -2), depth + 1) + "]";
      parts.push_back(name + " = " + nested(lua_gettop(state_), depth + 1));
      if (used_ > kMaxText) {
        lua_pop(state_, 2);
        break;
      }
    }
    std::sort(parts.begin(), parts.end());
    return parts;
  }

  static std::string joined(const std::vector<std::string>& parts, const std::string& between) {
    std::string text;
    for (const auto& part : parts) text += (text.empty() ? "" : between) + part;
    return text;
  }

  lua_State* state_;
  std::size_t used_ = 0;  ///< bytes of the text so far, at least
};

Result<Json> list_at(lua_State* state, int index, bool of_points = true) {
  const lua_Unsigned size = lua_rawlen(state, index);
  if (size > kLongestList) return fail(ErrorKind::usage, "a list of " + std::to_string(size) + " values");
  Json list = Json::array();
  bool points = of_points;  // {500, 1e-3}: all of a list, or none
  for (lua_Unsigned i = 1; i <= size; ++i) {
    lua_rawgeti(state, index, static_cast<lua_Integer>(i));
    const bool table = lua_istable(state, -1);
    points = points && (i == 1 ? table : true);
    auto item = !table   ? setting_at(state, -1)
                : points ? list_at(state, lua_gettop(state), /*of_points=*/false)
                         : fail(ErrorKind::usage, "a table inside a list");
    lua_pop(state, 1);
    if (!item) return item;
    list.push_back(*std::move(item));
  }
  lua_pushnil(state);
  for (lua_Unsigned seen = 0; lua_next(state, index) != 0; lua_pop(state, 1))
    if (++seen > size) {
      lua_pop(state, 2);
      return fail(ErrorKind::usage, "a table with named fields");
    }
  return list;
}

int refuse_element(lua_State* state) {
  const std::string name = lua_tostring(state, lua_upvalueindex(1));
  throw ScriptError(name + " is read-only element by element; assign the whole list: " + name + " = { … }");
}

int fixed_length(lua_State* state) {
  lua_pushinteger(state, static_cast<lua_Integer>(lua_rawlen(state, lua_upvalueindex(1))));
  return 1;
}

int fixed_pairs(lua_State* state) {
  lua_getglobal(state, "next");
  lua_pushvalue(state, lua_upvalueindex(1));
  lua_pushnil(state);
  return 3;
}

/// The table at the top of the stack becomes a read-only view of itself.
void make_fixed(lua_State* state, const std::string& name) {
  const int values = lua_gettop(state);
  lua_newtable(state);
  lua_createtable(state, 0, 6);
  lua_pushvalue(state, values);
  lua_setfield(state, -2, "__index");
  lua_pushvalue(state, values);
  lua_setfield(state, -2, kFixedList);
  lua_pushvalue(state, values);
  lua_pushcclosure(state, fixed_length, 1);
  lua_setfield(state, -2, "__len");
  lua_pushvalue(state, values);
  lua_pushcclosure(state, fixed_pairs, 1);
  lua_setfield(state, -2, "__pairs");
  lua_pushlstring(state, name.data(), name.size());
  lua_pushcclosure(state, bound<refuse_element>, 1);
  lua_setfield(state, -2, "__newindex");
  lock_metatable(state);
  lua_setmetatable(state, -2);
  lua_remove(state, values);
}

}  // namespace

void open_convert(lua_State* state) {
  luaL_newmetatable(state, kList);
  lock_metatable(state);
  lua_pop(state, 1);
}

void push_json(lua_State* state, const Json& json) {
  luaL_checkstack(state, 4, "value nested too deeply");
  if (json.is_string()) {
    const auto& text = json.get_ref<const std::string&>();
    if (const auto special = number_from_json(json))
      lua_pushnumber(state, *special);
    else
      lua_pushlstring(state, text.data(), text.size());
  } else if (json.is_boolean()) {
    lua_pushboolean(state, json.get<bool>() ? 1 : 0);
  } else if (json.is_number_integer()) {
    lua_pushinteger(state, json.get<lua_Integer>());
  } else if (json.is_number()) {
    lua_pushnumber(state, json.get<double>());
  } else if (json.is_array()) {
    lua_createtable(state, static_cast<int>(json.size()), 0);
    lua_Integer position = 0;
    for (const auto& item : json) {
      push_json(state, item);
      lua_rawseti(state, -2, ++position);
    }
    luaL_setmetatable(state, kList);
  } else if (json.is_object()) {
    lua_createtable(state, 0, static_cast<int>(json.size()));
    for (const auto& [key, item] : json.items()) {
      lua_pushlstring(state, key.data(), key.size());
      push_json(state, item);
      lua_rawset(state, -3);
    }
  } else {
    lua_pushnil(state);
  }
}

void push_text(lua_State* state, std::string_view text) {
  lua_pushlstring(state, text.data(), text.size());
}

void push_field(lua_State* state, const Json& object, const std::string& name) {
  const auto found = object.find(name);
  push_json(state, found == object.end() ? Json() : *found);
}

void push_value(lua_State* state, const Value& value, const std::string& name) {
  push_json(state, to_json(value));
  if (std::holds_alternative<std::vector<double>>(value)) make_fixed(state, name);
}

void push_copy(lua_State* state, const Value& value) {
  push_json(state, to_json(value));
  if (!lua_istable(state, -1)) return;
  lua_pushnil(state);
  lua_setmetatable(state, -2);
}

Result<Json> setting_at(lua_State* state, int index) {
  index = lua_absindex(state, index);
  switch (lua_type(state, index)) {
    case LUA_TNIL:
    case LUA_TBOOLEAN:
    case LUA_TNUMBER:
    case LUA_TSTRING:
      return json_at(state, index);
    case LUA_TTABLE:
      return list_at(state, index);
    case LUA_TUSERDATA:
      return fail(ErrorKind::usage, "a group of settings");
    default:
      return fail(ErrorKind::usage, std::string("a ") + luaL_typename(state, index));
  }
}

Json json_at(lua_State* state, int index) {
  Budget budget;
  return convert(state, lua_absindex(state, index), 0, budget);
}

std::string render(lua_State* state, int index) {
  index = lua_absindex(state, index);
  std::string text =
      lua_type(state, index) == LUA_TSTRING ? key_text(state, index) : Renderer(state).nested(index, 0);
  if (text.size() > kMaxText) {
    const std::size_t size = text.size();
    text.resize(first_bytes(text, kMaxText).size());
    text += "\n… cut here: " + std::to_string(size) + " bytes in all";
  }
  return text;
}

void check_arguments(const Json& arguments, const std::vector<std::string>& known,
                     const std::string& function) {
  for (const auto& [key, value] : arguments.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw ScriptError(unknown_argument(function, key, known));
  }
}

}  // namespace footplate::lua
