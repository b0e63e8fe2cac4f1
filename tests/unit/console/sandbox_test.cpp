// What a script can't reach, and what stops it inside the process. attacks_test.cpp has what only a kill
// stops.

#include <gmock/gmock.h>

#include "fake_console.h"

namespace footplate::test {
namespace {

using testing::HasSubstr;

TEST(Sandbox, DangerousNamesAreMissing) {
  FakeConsole console;
  for (const char* name :
       {"io", "os", "package", "debug", "dofile", "loadfile", "require", "loadstring", "jit"}) {
    const auto outcome = console.run(std::string("return ") + name);
    ASSERT_TRUE(outcome.error) << name;
    EXPECT_THAT(outcome.error->message, HasSubstr("unknown name"));
  }
  for (const char* name : {"string.dump", "string.pack", "coroutine.nothing"})
    EXPECT_EQ(console.run(std::string("return ") + name + " == nil").text, "true") << name;
}

TEST(Sandbox, DoorsAreClosed) {
  FakeConsole console;
  for (const char* code :
       {"setmetatable({}, { __gc = function() end })", "collectgarbage('stop')", "string.rep('x', 1 << 40)",
        "table.move({}, 1, 1 << 40, 2)", "table.unpack({}, 1, 1 << 40)", "table.concat({}, '', 1, 1 << 40)",
        "table.insert(setmetatable({}, { __len = function() return 1 << 50 end }), 1, 1)",
        "('a'):rep(40):find(('a-'):rep(30) .. 'b')", "('x'):rep(70000):format()",
        "table.move({}, math.mininteger, math.maxinteger, 2)", "load('\\27Lua')()",
        "getmetatable('').__index.upper = 1", "getmetatable(log).__newindex = 1", "setmetatable(_G, {})",
        "load(string.rep('x', 3), 'n', 'b')()", "rawset(math, 'floor', print)",
        "string.match('a', ('a'):rep(2000), 1, true)", "string.gmatch('a', ('a'):rep(2000), 1, true)",
        "('x'):rep(2000000):find('y')"})
    EXPECT_TRUE(console.run(code).error) << code;
  EXPECT_EQ(console.run("return getmetatable(''), getmetatable(log), getmetatable(_G)").text,
            "locked\nlocked\nlocked");
  EXPECT_EQ(console.run("return load('return log.every')()").text, "50");
  EXPECT_EQ(console.run("return #string.rep('', 1 << 40)").text, "0");
  EXPECT_EQ(console.run("return ('x'):rep(1 << 24):find('y', 1, true)").text, "");
  EXPECT_THAT(console.run("('a'):rep(1 << 20):find(('a'):rep(1 << 10) .. 'b', 1, true)").error->message,
              HasSubstr("is too long to look for 1025 in it"));
  EXPECT_EQ(console.run("local t = {} rawset(t, 1, 7) return t[1]").text, "7");
  EXPECT_EQ(console.run("local _, library = pairs(math) library.floor = print return math.floor(2.5)").text,
            "2");
}

TEST(Sandbox, AListThatContainsItselfIsCut) {
  FakeConsole console;
  const auto outcome = console.run("local t = {} for i = 1, 100 do t[i] = t end return t");
  EXPECT_FALSE(outcome.error);
  EXPECT_THAT(outcome.text, HasSubstr("cut here"));
}

TEST(Sandbox, AListWithHolesKeepsItsKeys) {
  FakeConsole console;
  const auto outcome = console.run("return { 1, nil, 3, [7] = 4 }");
  EXPECT_EQ(outcome.value, (Json{{"1", 1}, {"3", 3}, {"7", 4}}));
  EXPECT_EQ(outcome.text, "{ [1] = 1, [3] = 3, [7] = 4 }");
}

TEST(Sandbox, LoopsEndAtTheirLimit) {
  for (const char* code : {"while true do end", "while true do pcall(function() while true do end end) end",
                           "coroutine.wrap(function() while true do end end)()",
                           "local co = coroutine.create(function() while true do pcall(function() while true "
                           "do end end) end end) "
                           "while true do coroutine.resume(co) end",
                           "xpcall(function() while true do end end, function() while true do end end)",
                           "local function f() xpcall(f, f) end while true do pcall(f) end",
                           "local t <close> = setmetatable({}, { __close = function() while true do end end "
                           "}) while true do end",
                           "setmetatable({}, { __index = function() while true do end end }).x = nil return "
                           "setmetatable({}, { __index = function() while true do end end }).x",
                           "return setmetatable({}, { __tostring = function() while true do end end })",
                           "table.sort({ 3, 2, 1 }, function() while true do end end)",
                           "while true do status() end", "while true do run.wait{ step = 1 } end"}) {
    FakeConsole console;
    const auto outcome = console.run(code);
    ASSERT_TRUE(outcome.error) << code;
    EXPECT_THAT(outcome.error->message, HasSubstr("a chunk may run for")) << code;
    EXPECT_EQ(console.run("return 1 + 1").text, "2") << "after " << code;
  }
}

TEST(Sandbox, MemoryIsCappedAndTheStateStaysUsable) {
  for (const char* code :
       {"local t = {} while true do t[#t + 1] = ('x'):rep(1 << 20) end",
        "local s = 'x' while true do s = s .. s end", "local function f() return { f() } end f()"}) {
    FakeConsole console;
    EXPECT_TRUE(console.run(code).error) << code;
    EXPECT_EQ(console.run("return 1 + 1").text, "2") << "after " << code;
  }
}

TEST(Sandbox, XpcallWorksAsInLua) {
  FakeConsole console;
  EXPECT_EQ(console.run("return xpcall(function(a, b) return a + b end, print, 1, 2)").text, "true\n3");
  EXPECT_EQ(console.run("return xpcall(error, function(e) return 'seen ' .. e end, 'x')").text,
            "false\nseen x");
  EXPECT_EQ(console
                .run("return coroutine.wrap(function() return xpcall(function() return coroutine.yield(1) "
                     "end, print) end)()")
                .text,
            "1");
}

}  // namespace
}  // namespace footplate::test
