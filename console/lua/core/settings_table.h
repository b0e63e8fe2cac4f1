#pragma once

#include <functional>
#include <lua.hpp>
#include <memory>
#include <optional>
#include <string>

#include "protocol/schema.h"

namespace footplate::lua {

/// Tables in tables that set{} follows in a config; names have two or three parts.
inline constexpr int kDeepestSet = 4;

/// What the groups of a Lua state read and write: the settings of a config, the orders of a journal, what a
/// chunk stages. One thread. The functions throw ScriptError.
class SettingsTarget {
 public:
  virtual ~SettingsTarget() = default;

  virtual const Schema& schema() const = 0;

  /// Pushes the value of a setting.
  virtual void push_setting(lua_State* state, const std::string& name) = 0;

  /// `name = …`, with the value at stack index `value`; there may be no such setting.
  virtual void assign(lua_State* state, const std::string& name, int value) = 0;

  /// set{ … }, or log.set{ … } where `group` is "log"; what was given is at stack index 1.
  virtual void set(lua_State* state, const std::string& group) = 0;

  /// Pushes what there is besides settings, groups and set. False: nothing of that name; nothing is pushed.
  virtual bool push_member(lua_State* state, const std::string& name) = 0;

  /// The message for a name that is nothing.
  virtual std::string unknown_member(const std::string& name) const = 0;

  /// Whether a table for `name`, `depth` tables down in a set{}, has fields that are settings of their own.
  virtual bool has_fields(lua_State* state, const std::string& name, int depth) const = 0;

  /// The message for a key of a set{} that isn't a text but a `type`.
  virtual std::string refused_key(const std::string& group, const std::string& type) const;
};

/// Gives the state its target. Groups are values whose fields read and assign; `methods` are what their
/// metatable has besides, as for luaL_setfuncs. Once per state; may raise a Lua error.
void open_settings(lua_State* state, std::unique_ptr<SettingsTarget> target,
                   const luaL_Reg* methods = nullptr);

/// The one that open_settings() was given.
SettingsTarget& settings_target(lua_State* state);

/// Makes the groups, settings without a group, and set the global names of the state; whatever else is read
/// or assigned is an error.
void settings_as_globals(lua_State* state);

void push_group(lua_State* state, const std::string& group);

/// The name of the group at stack index `index`; a Lua error where it is none.
std::string group_at(lua_State* state, int index);

/// Of which group the function at stack index `index` is the set{}; "" of all, nothing: it is another
/// function.
std::optional<std::string> group_of_set(lua_State* state, int index);

/// Whether a setting or an action is in a group of that name.
bool is_group(const Schema& schema, const std::string& name);

/// Calls `use` for each setting that the table at `table` names, with its value on top of the stack: { every
/// = 10 } in `group`, { log = { every = 10 } } and { ["log.every"] = 10 } where that is empty. `depth` is how
/// many tables down it stands. The order is Lua's, by chance.
void for_each_setting(lua_State* state, int table, const std::string& group,
                      const std::function<void(const std::string& name, int depth)>& use);

}  // namespace footplate::lua
