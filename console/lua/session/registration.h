#pragma once

#include <lua.hpp>

#include "console/lua/reference/function_docs.h"

namespace footplate::lua {

/// What a script gets for a registered name.
enum class Form {
  function,  ///< the handler itself
  object,    ///< what the handler pushes, once, when the session begins: rules, store
  field,     ///< what the handler pushes, at each read: run.step
  text,      ///< nothing but its line in help()
};

/// A name that scripts have besides Lua's and the schema's: what people read about it, and what it does.
/// Help, completion, .luacheckrc and the table of docs/lua.md are made from these
/// (console/lua/api/catalogue.h). A dotted name is a field of its group: comm.drop.
struct Registration {
  FunctionDoc doc;
  Form form = Form::function;
  lua_CFunction handler = nullptr;  ///< bound<…>; has the session from session_of()
};

}  // namespace footplate::lua
