#include "console/lua/config/bounded_state.h"

#include <array>
#include <ctime>

#include "console/lua/core/convert.h"
#include "console/lua/core/sandbox.h"
#include "console/lua/core/syntax_advice.h"

namespace footplate {
namespace {

/// The hook looks this often: one instruction can copy megabytes, so counting alone doesn't bound time.
constexpr int kInstructionsPerLook = 100;

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

constexpr std::array<const char*, 9> kBase{"assert", "error",    "ipairs",   "next", "pairs",
                                           "select", "tonumber", "tostring", "type"};
constexpr std::array<const char*, 5> kString{"format", "len", "lower", "sub", "upper"};
constexpr std::array<const char*, 4> kTable{"concat", "insert", "remove", "unpack"};
constexpr std::array<const char*, 18> kMath{"abs",  "ceil", "cos", "exp",        "floor",     "fmod",
                                            "huge", "log",  "max", "maxinteger", "min",       "mininteger",
                                            "modf", "pi",   "sin", "sqrt",       "tointeger", "type"};

constexpr lua::AllowedLibrary kLibraries[] = {{LUA_STRLIBNAME, luaopen_string, kString, nullptr},
                                              {LUA_TABLIBNAME, luaopen_table, kTable, nullptr},
                                              {LUA_MATHLIBNAME, luaopen_math, kMath, nullptr}};

/// A global table with what is allowed, in place of Lua's own.
int open_libraries(lua_State* state) {
  lua_newtable(state);
  lua::add_base(state, 1, kBase);
  lua::add_libraries(state, 1, kLibraries, /*read_only=*/false);
  lua_rawseti(state, LUA_REGISTRYINDEX, LUA_RIDX_GLOBALS);
  lua::open_convert(state);
  return 0;
}

int call_prepare(lua_State* lua) {
  (*static_cast<const std::function<void(lua_State*)>*>(lua_touserdata(lua, 1)))(lua);
  return 0;
}

std::string message_on_top(lua_State* lua) {
  const char* text = lua_tostring(lua, -1);
  return text != nullptr ? text : "the error is a " + std::string(luaL_typename(lua, -1)) + ", not a text";
}

}  // namespace

BoundedState::BoundedState(std::size_t memory_bytes, int instructions, double processor_s)
    : allocator_(memory_bytes),
      instructions_(instructions),
      processor_s_(processor_s),
      state_(lua_newstate(&lua::CappedAllocator::allocate, &allocator_)) {
  if (!state_) return;
  lua::set_owner(get(), *this);
  lua_pushcfunction(get(), &open_libraries);
  if (lua_pcall(get(), 0, 0, 0) != LUA_OK) state_.reset();
}

void BoundedState::look(lua_State* lua, lua_Debug*) {
  auto& state = static_cast<BoundedState&>(lua::owner_of(lua));
  state.instructions_used_ += kInstructionsPerLook;
  const bool too_many = state.instructions_used_ > state.instructions_;
  if (!too_many && processor_seconds() <= state.deadline_) return;
  luaL_where(lua, 0);  // 0: a hook has no level of its own
  if (too_many)
    lua_pushfstring(
        lua,
        "still running after %d million instructions; a config only assigns settings: is a loop endless?",
        state.instructions_ / 1'000'000);
  else
    lua_pushfstring(lua, "still running after %f s of processor time; a config only assigns settings",
                    state.processor_s_);
  lua_concat(lua, 2);
  lua_error(lua);
}

int BoundedState::load(lua_State* lua, std::string_view text) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // some editors put one before the text
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return luaL_loadbufferx(lua, text.data(), text.size(), (std::string("=") + kChunkName).c_str(), "t");
}

Result<void> BoundedState::run(const std::string& text, const std::function<void(lua_State*)>& prepare) {
  if (!state_) return fail(ErrorKind::failed, "no memory for Lua");
  if (const std::string surplus = lua::surplus_value(text); !surplus.empty())
    return fail(ErrorKind::usage, std::string(kChunkName) + ":" + surplus);
  lua_State* lua = get();
  lua_pushcfunction(lua, &call_prepare);
  lua_pushlightuserdata(lua, const_cast<std::function<void(lua_State*)>*>(&prepare));
  int status = lua_pcall(lua, 1, 0, 0);
  if (status == LUA_OK) status = load(lua, text);
  const bool is_syntax = status == LUA_ERRSYNTAX;
  if (status == LUA_OK) {
    deadline_ = processor_seconds() + processor_s_;
    instructions_used_ = 0;
    lua_sethook(lua, &BoundedState::look, LUA_MASKCOUNT, kInstructionsPerLook);
    status = lua_pcall(lua, 0, LUA_MULTRET, 0);
    lua_sethook(lua, nullptr, 0, 0);
    if (status == LUA_OK && lua_gettop(lua) > 0)
      return fail(ErrorKind::usage,
                  "it returns a value, and nobody reads that; a config assigns: train.steps = 1000");
  }
  if (status == LUA_OK) return {};
  std::string message = message_on_top(lua);
  if (is_syntax) message = lua::with_syntax_advice(message, text);
  if (status == LUA_ERRMEM)
    message = "uses more than " + std::to_string(allocator_.cap_bytes() >> 20) +
              " MiB of memory; a config only assigns settings";
  return fail(ErrorKind::usage, std::move(message));
}

}  // namespace footplate
