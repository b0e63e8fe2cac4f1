#include "console/client/render/render.h"
#include "console/lua/api/api.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
#include "console/lua/core/table_options.h"
#include "console/lua/session/session.h"
#include "console/network/ras.h"
#include "protocol/nccl/variables.h"
#include "protocol/network/preset.h"

// nccl.preset("ethernet"), nccl.show(), nccl.ras(): what NCCL's settings have besides fields.

namespace footplate::lua {
namespace {

/// Somebody has set it: in this chunk, or anywhere before.
bool is_set(Session& session, const std::string& name) {
  return session.settings().source(name) != "default" ||
         session.stage().value(name) != session.settings().value(name);
}

std::string when_text(const SettingSpec& spec) {
  switch (spec.applies) {
    case Applies::restart:
      return "next start";
    case Applies::comm:
      return "new communicators";
    case Applies::step:
      return spec.name.starts_with("nccl.debug") ? "at once" : "next collective";
    case Applies::fixed:
    case Applies::state:
      break;
  }
  return std::string(to_string(spec.applies));
}

int preset(lua_State* state) {
  Session& session = session_of(state);
  auto found = footplate::nccl_preset(string_argument(state, 1), read_network("/"),
                                      [&](const std::string& name) { return is_set(session, name); });
  if (!found) throw ScriptError(found.error());
  Json changes = Json::object();
  std::string text;
  for (const auto& change : found->changes) {
    if (auto staged = session.stage().assign(change.name, change.value); !staged)
      throw ScriptError(staged.error());
    changes[change.name] = change.value;
    text += change.name + " = " + to_text(session.stage().value(change.name)) + "\n";
  }
  for (const auto& line : found->said) text += line + "\n";
  push_listing(state, changes, without_newline(std::move(text)));
  return 1;
}

/// What this host makes of nccl.preset, as its ranks do at their start.
Settings as_on_this_host(Session& session) {
  std::vector<std::string> said;
  return with_preset(session.schema(), session.settings(), read_network("/"), said);
}

int show(lua_State* state) {
  Session& session = session_of(state);
  const Settings here = as_on_this_host(session);
  Json rows = Json::array();
  std::vector<std::vector<std::string>> lines{
      {"setting", "value", "from", "takes effect", "NCCL's variable"}};
  for (const auto& spec : session.schema().settings) {
    if (!spec.name.starts_with("nccl.")) continue;
    const bool preset = is_preset(here.source(spec.name));
    const Value& value = preset ? here.value(spec.name) : session.stage().value(spec.name);
    const std::string& source = here.source(spec.name);
    const std::string when = when_text(spec);
    // What is told NCCL otherwise isn't in its environment.
    const std::string text =
        spec.applies == Applies::restart ? variable_text(spec, value).value_or("") : std::string();
    const std::string variable = text.empty() ? spec.variable : spec.variable + "=" + text;
    rows.push_back({{"name", spec.name},
                    {"value", to_json(value)},
                    {"source", source},
                    {"applies", to_string(spec.applies)},
                    {"variable", variable}});
    lines.push_back({spec.name, to_text(value), source, when, variable});
  }
  push_listing(state, rows, without_newline(table(lines)));
  return 1;
}

/// Asked from this process, which is on rank 0's host and may wait: neither the console nor a rank does.
int ras(lua_State* state) {
  constexpr std::chrono::seconds kAtMost{5};
  Session& session = session_of(state);
  const Json arguments = lua_isnoneornil(state, 1) ? Json::object() : json_at(state, 1);
  check_arguments(arguments, {"verbose"}, "nccl.ras");
  const bool verbose = TableOptions(arguments, "nccl.ras").flag("verbose").value_or(false);
  session.begin_wait("nccl.ras");
  const char* address = std::getenv(kRasAddress);
  const Waiting waiting(session.activity().clock);
  auto said = ask_nccl_ras(address != nullptr ? address : "localhost:28028", verbose, kAtMost);
  if (!said) throw ScriptError(Error{said.error().kind, "nccl.ras: " + said.error().message});
  std::string text = without_newline(*std::move(said));
  std::erase_if(text, [](unsigned char c) { return (c < ' ' && c != '\n' && c != '\t') || c == 0x7f; });
  push_listing(state, text, text);
  return 1;
}

constexpr Registration kNcclFunctions[] = {
    {.doc = {.name = "nccl.preset",
             .role = Role::admin,
             .example = "nccl.preset(\"ethernet\")",
             .help =
                 "sets what is usual there and nobody has set; infiniband ethernet pcie nvlink conservative"},
     .handler = bound<preset>},
    {.doc = {.name = "nccl.show",
             .role = Role::view,
             .example = "nccl.show()",
             .help = "NCCL's settings, where each comes from, its variable and when it applies"},
     .handler = bound<show>},
    {.doc = {.name = "nccl.ras",
             .role = Role::view,
             .example = "nccl.ras()",
             .help =
                 "what NCCL's own service says of the run's communicators, such as ranks that are missing or "
                 "behind; { verbose = true } says more. By hand only: asked often it has crashed jobs"},
     .handler = bound<ras>},
};

}  // namespace

std::span<const Registration> nccl_functions() {
  return kNcclFunctions;
}

}  // namespace footplate::lua
