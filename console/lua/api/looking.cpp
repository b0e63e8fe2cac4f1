#include <algorithm>

#include "console/client/render/render.h"
#include "console/lua/api/api.h"
#include "console/lua/api/catalogue.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
#include "console/lua/reference/columns.h"
#include "console/lua/reference/help.h"
#include "console/lua/session/computed_settings.h"
#include "console/lua/session/session.h"

// status(), journal(), settings(), help(): what the console and the schema know.

namespace footplate::lua {
namespace {

int status(lua_State* state) {
  Session& session = session_of(state);
  const RunStatus status = session.look(request::Status{});
  push_listing(state, to_json(status), without_newline(render_status(status, session.greeting().run.name)));
  return 1;
}

int journal(lua_State* state) {
  push_text(state, session_of(state).look(request::Journal{}));
  return 1;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool matches(const SettingSpec& spec, const std::string& pattern) {
  return contains(spec.name, pattern) || contains(spec.help, pattern) || contains(spec.variable, pattern) ||
         std::any_of(spec.aliases.begin(), spec.aliases.end(),
                     [&](const auto& alias) { return contains(alias, pattern); });
}

/// settings("pending")
int list_pending(lua_State* state) {
  Session& session = session_of(state);
  const auto pending = session.look(request::Pending{});
  std::vector<std::vector<std::string>> lines;
  for (const PendingSetting& setting : pending) {
    const auto at_start = session.schema().check(setting.name, setting.at_start);
    const auto value = session.schema().check(setting.name, setting.value);
    if (!at_start || !value) continue;
    lines.push_back({setting.name, to_text(*at_start) + " -> " + to_text(*value), setting.source});
  }
  push_listing(state, list_of(pending),
               lines.empty() ? "nothing waits for the next start"
                             : in_columns(lines) + "\nrun.restart() starts again");
  return 1;
}

/// settings("lr")
int list_settings(lua_State* state) {
  Session& session = session_of(state);
  const std::string pattern = lua_isnoneornil(state, 1) ? "" : string_argument(state, 1);
  if (pattern == "pending") return list_pending(state);
  Json rows = Json::array();
  std::vector<std::vector<std::string>> lines;
  for (const auto& spec : session.schema().settings) {
    if (!matches(spec, pattern)) continue;
    const Value& value = value_read(session, spec.name);
    const std::string& source = session.settings().source(spec.name);
    rows.push_back({{"name", spec.name},
                    {"value", to_json(value)},
                    {"unit", spec.unit},
                    {"source", source},
                    {"help", spec.help}});
    const bool has_unit =
        !spec.unit.empty() && !std::holds_alternative<std::string>(value);  // "30m" has its own
    const std::string shown = to_text(value) + (has_unit ? " " + spec.unit : "");
    lines.push_back({spec.name, shown, source, spec.help});
  }
  push_listing(state, rows,
               rows.empty() ? "no setting has '" + pattern + "' in its name or help" : in_columns(lines));
  return 1;
}

/// help(), help("log.every"), help(log)
int help(lua_State* state) {
  Session& session = session_of(state);
  std::string name;
  if (lua_isuserdata(state, 1)) {
    luaL_tolstring(state, 1, nullptr);  // "log.every = 10 …": its first word has the group
    name = lua_tostring(state, -1);
    name = name.substr(0, name.find('.'));
  } else if (!lua_isnoneornil(state, 1)) {
    name = string_argument(state, 1);
  }
  renew_computed(session);
  const std::string text = help_text(session.schema(), session.settings(), catalogue_docs(), name);
  lua_pushlstring(state, text.data(), text.size());
  return 1;
}

constexpr Registration kLookingFunctions[] = {
    {.doc = {.name = "journal",
             .role = Role::view,
             .example = "journal()",
             .help = "the end of the run's journal, every applied change as Lua",
             .in_overview = true},
     .handler = bound<journal>},
    {.doc = {.name = "status",
             .role = Role::view,
             .example = "status()",
             .help = "where the run is, and each rank",
             .in_overview = true},
     .handler = bound<status>},
    {.doc = {.name = "settings",
             .role = Role::view,
             .example = "settings(\"lr\")",
             .help = "settings whose name, other names or help have this text; without it all of them; "
                     "settings(\"pending\"): what is set and waits for the next start",
             .in_overview = true},
     .handler = bound<list_settings>},
    {.doc = {.name = "help",
             .role = Role::view,
             .example = "help(\"log.every\")",
             .help = "what a setting, an action, a group or a function does",
             .in_overview = true},
     .handler = bound<help>},
};

}  // namespace

std::span<const Registration> looking_functions() {
  return kLookingFunctions;
}

}  // namespace footplate::lua
