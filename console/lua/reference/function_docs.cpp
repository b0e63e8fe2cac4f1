#include "console/lua/reference/function_docs.h"

#include <array>

namespace footplate {
namespace {

constexpr std::array kLuaNames = {"assert",
                                  "error",
                                  "ipairs",
                                  "load",
                                  "next",
                                  "pairs",
                                  "pcall",
                                  "select",
                                  "setmetatable",
                                  "tonumber",
                                  "tostring",
                                  "type",
                                  "xpcall",
                                  "coroutine.create",
                                  "coroutine.isyieldable",
                                  "coroutine.resume",
                                  "coroutine.running",
                                  "coroutine.status",
                                  "coroutine.wrap",
                                  "coroutine.yield",
                                  "math.abs",
                                  "math.ceil",
                                  "math.exp",
                                  "math.floor",
                                  "math.huge",
                                  "math.log",
                                  "math.max",
                                  "math.min",
                                  "math.pi",
                                  "math.random",
                                  "math.sqrt",
                                  "math.tointeger",
                                  "string.byte",
                                  "string.char",
                                  "string.find",
                                  "string.format",
                                  "string.gmatch",
                                  "string.gsub",
                                  "string.len",
                                  "string.lower",
                                  "string.match",
                                  "string.rep",
                                  "string.reverse",
                                  "string.sub",
                                  "string.upper",
                                  "table.concat",
                                  "table.insert",
                                  "table.move",
                                  "table.remove",
                                  "table.sort",
                                  "table.unpack",
                                  "utf8.char",
                                  "utf8.codepoint",
                                  "utf8.len"};

}  // namespace

std::string FunctionDoc::line() const {
  return *example == '\0' ? help : std::string(example) + ": " + help;
}

std::span<const char* const> lua_names() {
  return kLuaNames;
}

}  // namespace footplate
