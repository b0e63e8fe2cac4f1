#pragma once

namespace footplate {

/// "Lua 5.4.4": what configs, the prompt and scripts are run by.
const char* lua_version();

}  // namespace footplate
