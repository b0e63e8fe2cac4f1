#include "console/lua/config/config_groups.h"

#include "console/lua/config/config.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/settings_table.h"
#include "protocol/network/preset.h"
#include "protocol/schema_names.h"

namespace footplate {
namespace {

/// What other languages have, and a config hasn't; empty: nothing is known of the name.
std::string text_for_foreign_name(const std::string& name) {
  for (const auto& [foreign, own] : {std::pair{"True", "true"}, std::pair{"False", "false"}})
    if (name == foreign) return std::string("Lua writes ") + own;
  for (const char* nothing : {"None", "null", "NULL", "undefined"})
    if (name == nothing) return "where nothing is meant, leave the line out";
  for (const char* other : {"print", "io", "os", "require", "dofile", "load", "input", "env"})
    if (name == other)
      return "a config only assigns settings; what differs from run to run is given as KEY=VALUE on the "
             "command line";
  return {};
}

/// The line of the config that runs; 0: none.
int current_line(lua_State* state) {
  lua_Debug activation;
  for (int level = 1; lua_getstack(state, level, &activation) != 0; ++level) {
    lua_getinfo(state, "l", &activation);
    if (activation.currentline > 0) return activation.currentline;
  }
  return 0;
}

int call_preset(lua_State* state);

/// The settings that a config reads and assigns.
class ConfigSettings final : public lua::SettingsTarget {
 public:
  ConfigSettings(Schema& schema, Settings& settings, std::string shown_as, SchemaOfTask of_task)
      : schema_(schema), settings_(settings), shown_as_(std::move(shown_as)), of_task_(std::move(of_task)) {}

  const Schema& schema() const override { return schema_; }

  void push_setting(lua_State* state, const std::string& name) override {
    lua::push_copy(state, settings_.value(name));
  }

  void assign(lua_State* state, const std::string& name, int value) override {
    const SettingSpec* spec = schema_.setting(name);
    if (spec == nullptr) {
      if (lua::is_group(schema_, name))
        throw lua::ScriptError(name + " is a group of settings and can't be assigned; write " + name +
                               ".set{ … } or " + name + ".NAME = …");
      throw lua::ScriptError(unknown_member(name));
    }
    const auto json = lua::setting_at(state, value);
    if (!json)
      throw lua::ScriptError(name + " can't be " + json.error().message + "; allowed: " + allowed(*spec));
    set_checked(state, name, *json);
  }

  void set(lua_State* state, const std::string& group) override {
    if (!lua_istable(state, 1))
      throw lua::ScriptError(group.empty() ? "set takes a table: set{ train = { steps = 100 } }"
                                           : group + ".set takes a table: " + group + ".set{ NAME = VALUE }");
    lua::for_each_setting(state, 1, group,
                          [&](const std::string& name, int) { assign(state, name, lua_gettop(state)); });
  }

  bool push_member(lua_State* state, const std::string& name) override {
    if (name != "nccl.preset" || !lua::is_group(schema_, "nccl")) return false;
    lua_pushcfunction(state, lua::bound<call_preset>);
    return true;
  }

  /// The name itself is in the message as the user wrote it; a word without a dot may be a group or a local.
  std::string unknown_member(const std::string& name) const override {
    if (schema_.action(name) != nullptr)
      return name +
             " is an action; a config only assigns settings, actions belong at the prompt or in a job script";
    if (name == "task") return schema_.unknown_setting(name);
    if (name.find('.') != std::string::npos || schema_.knows_variable(name))
      return schema_.unknown_setting(name);
    if (std::string text = text_for_unquoted_choice(schema_, name); !text.empty()) return text;
    std::vector<std::string> groups;
    for (const auto& spec : schema_.settings) groups.push_back(spec.name.substr(0, spec.name.find('.')));
    if (const std::string near = nearest(name, groups); !near.empty())
      return "unknown name '" + name + "'; did you mean " + near + "?";
    if (std::string text = text_for_foreign_name(name); !text.empty())
      return "unknown name '" + name + "'; " + text;
    return "unknown name '" + name + "'; a text is written in quotes, \"" + name +
           "\"; a name of your own needs 'local " + name + " = …'";
  }

  bool has_fields(lua_State*, const std::string& name, int depth) const override {
    return schema_.setting(name) == nullptr && lua::is_group(schema_, name) && depth < lua::kDeepestSet;
  }

  /// nccl.preset("ethernet"): assigns what nothing has assigned before.
  void set_preset(lua_State* state) {
    if (lua_type(state, 1) != LUA_TSTRING)
      throw lua::ScriptError("nccl.preset takes a name: nccl.preset(\"ethernet\")");
    const auto preset =
        nccl_preset(lua_tostring(state, 1), read_network("/"),
                    [&](const std::string& setting) { return settings_.source(setting) != "default"; });
    if (!preset) throw lua::ScriptError(preset.error());
    for (const auto& change : preset->changes) set_checked(state, change.name, change.value);
  }

 private:
  void set_checked(lua_State* state, const std::string& name, const Json& json) {
    auto value = check_config_value(schema_, name, json);
    if (!value) throw lua::ScriptError(value.error());
    const auto set = set_checked_value(schema_, settings_, name, *std::move(value),
                                       shown_as_ + ":" + std::to_string(current_line(state)), of_task_);
    if (!set) throw lua::ScriptError(set.error());
  }

  Schema& schema_;
  Settings& settings_;
  std::string shown_as_;
  SchemaOfTask of_task_;
};

int call_preset(lua_State* state) {
  static_cast<ConfigSettings&>(lua::settings_target(state)).set_preset(state);
  return 0;
}

}  // namespace

void install_groups(lua_State* state, Schema& schema, Settings& settings, const std::string& shown_as,
                    const SchemaOfTask& of_task) {
  lua::open_settings(state, std::make_unique<ConfigSettings>(schema, settings, shown_as, of_task));
  lua::settings_as_globals(state);
}

}  // namespace footplate
