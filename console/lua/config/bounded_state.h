#pragma once

#include <cstddef>
#include <functional>
#include <lua.hpp>
#include <memory>
#include <string>

#include "console/lua/core/bind.h"
#include "console/lua/core/limits.h"
#include "protocol/result.h"

namespace footplate {

/// A Lua state with a cap on memory, instructions and processor time, and with only those library functions
/// that a count hook can interrupt: a single call of string.rep, string.find or table.move can run for hours,
/// pcall swallows the hook's error, and metatables bring finalisers that run without the hook.
class BoundedState final : public lua::StateOwner {
 public:
  BoundedState(std::size_t memory_bytes, int instructions, double processor_s);

  lua_State* get() const { return state_.get(); }

  /// Loads `text` (never bytecode) and runs it. The error starts with "(config):LINE: " where Lua gave a
  /// line. Before that, `prepare` puts names of its own into the state, in a protected call.
  Result<void> run(const std::string& text, const std::function<void(lua_State*)>& prepare);

  /// How messages name the chunk, to be replaced by the file's name: Lua would shorten a long one.
  static constexpr const char* kChunkName = "(config)";

 private:
  struct Close {
    void operator()(lua_State* state) const { lua_close(state); }
  };

  static void look(lua_State* lua, lua_Debug*);
  static int load(lua_State* lua, std::string_view text);

  lua::CappedAllocator allocator_;
  int instructions_;
  int instructions_used_ = 0;
  double processor_s_;
  double deadline_ = 0;                      ///< of this process's processor time, in seconds
  std::unique_ptr<lua_State, Close> state_;  ///< last: its end frees through the members above
};

}  // namespace footplate
