#pragma once

#include <span>
#include <string>

#include "protocol/schema.h"

namespace footplate {

/// What people read about a name that scripts have besides the schema's: a function, a listing or a value. It
/// is written beside the name's handler (console/lua/session/registration.h). The console's process, which
/// has no Lua in it, has the same lines compiled in: footplate-print-functions writes them at build time.
struct FunctionDoc {
  const char* name = "";   ///< "orders", "run.wait"
  Role role = Role::view;  ///< the least that it takes; the settings and actions that it names may take more
  const char* example = "";  ///< how it is written, "undo()"; empty: like its name
  const char* help = "";     ///< one line, which goes on from the example
  bool in_overview = false;  ///< help() lists it, in the order of registration

  /// "undo(): puts back …"
  std::string line() const;
};

using FunctionDocs = std::span<const FunctionDoc>;

/// Those of footplate-lua, for a process without Lua (the library footplate_function_docs).
FunctionDocs compiled_function_docs();

/// Lua's own names, as far as a session has them.
std::span<const char* const> lua_names();
inline constexpr const char* kLuaNameHelp = "of Lua 5.4";

}  // namespace footplate
