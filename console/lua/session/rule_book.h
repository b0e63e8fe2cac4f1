#pragma once

#include <cstdint>
#include <lua.hpp>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "console/lua/session/chunk_console.h"

namespace footplate::lua {

/// The rules that chunks register, and the functions of those that run in this process (docs/lua.md,
/// "Rules"). One thread.
class RuleBook {
 public:
  /// Both outlive it.
  RuleBook(const Greeting& greeting, ChunkConsole& console) : greeting_(greeting), console_(console) {}

  /// Rules are those of this chunk from now on; a job's script is 0.
  void begin_chunk(std::int64_t chunk) { chunk_ = chunk; }

  /// Takes a rule on whose function is at the stack's `function`. Throws ScriptError where none may be
  /// registered.
  std::shared_ptr<RegisteredRule> add(lua_State* state, RuleSpec spec, int function);

  /// A session's rules: the console runs the chunk again in the rules' process, and answers once they are
  /// there. Throws ScriptError.
  void send();

  /// Takes back what the running chunk has registered: it failed.
  void drop();

  /// The reference of a rule's function; none: it isn't in this process.
  std::optional<int> function(std::int64_t chunk, std::int64_t index) const;

 private:
  /// Where a rule's function is kept: by its chunk, and its place among that chunk's rules.
  using Key = std::pair<std::int64_t, std::int64_t>;

  const Greeting& greeting_;
  ChunkConsole& console_;
  std::int64_t chunk_ = 0;
  std::map<Key, int> functions_;
  std::int64_t job_rules_ = 0;  ///< that this job has registered
};

}  // namespace footplate::lua
