// What is registered is there, once, and told of as it is written.
#include "console/lua/api/catalogue.h"

#include <gmock/gmock.h>

#include "console/lua/reference/function_docs.h"
#include "fake_console.h"

namespace footplate::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class Catalogue : public LuaChunks {};

TEST_F(Catalogue, EveryNameIsThere) {
  for (const lua::Registration& registration : lua::catalogue()) {
    const std::string name = registration.doc.name;
    if (registration.form == lua::Form::text) continue;
    EXPECT_NE(registration.handler, nullptr) << name;
    const std::string type = text_of("return type(" + name + ")");
    if (registration.form == lua::Form::function) {
      EXPECT_EQ(type, "function") << name;
    } else if (registration.form == lua::Form::object) {
      EXPECT_EQ(type, "userdata") << name;
    }
  }
}

/// Contents, or a line of help: a pointer tells nobody anything.
TEST_F(Catalogue, NoBareNamePrintsAPointer) {
  std::vector<std::string> names;
  std::set<std::string> groups;
  for (const lua::Registration& registration : lua::catalogue())
    if (registration.form != lua::Form::text) names.emplace_back(registration.doc.name);
  for (const SettingSpec& spec : console.session().schema().settings) names.push_back(spec.name);
  for (const ActionSpec& spec : console.session().schema().actions) names.push_back(spec.name);
  for (const char* name : lua_names()) names.emplace_back(name);
  for (const std::string& name : names) groups.insert(name.substr(0, name.find('.')));
  for (const std::string& group : groups) names.push_back(group);
  for (const char* other : {"_G", "log.set", "string.rep", "math.pi", "collectgarbage"})
    names.emplace_back(other);
  ASSERT_GT(names.size(), 100U);
  for (const std::string& name : names) {
    const auto outcome = console.run(name);
    ASSERT_FALSE(outcome.error) << name << ": " << outcome.error->message;
    for (const std::string& text : {outcome.text, outcome.value.dump()})
      EXPECT_THAT(text, Not(AnyOf(HasSubstr("0x"), HasSubstr("userdata"), HasSubstr("builtin")))) << name;
    if (!outcome.value.is_null() && !outcome.value.is_string()) continue;
    if (outcome.value.is_string() && outcome.value.get_ref<const std::string&>().empty()) continue;
    EXPECT_NE(outcome.text, "") << name;
  }
}

TEST_F(Catalogue, ABareNameSaysWhatIsInItOrHowItIsCalled) {
  console.metrics = {{"train/loss", 2.5}};
  EXPECT_EQ(text_of("metrics"), "{ [\"train/loss\"] = 2.5 }");
  console.metrics = Json::object();
  EXPECT_EQ(text_of("metrics"), "nothing has been logged yet");
  EXPECT_EQ(text_of("store"), "store has nothing; store.x = 5 keeps data of the run");
  text_of("store.x = 5");
  EXPECT_EQ(text_of("store"), "{ x = 5 }");
  EXPECT_EQ(text_of("rules"), "no rules");
  EXPECT_THAT(text_of("orders"), StartsWith("1  applied at step 12041"));
  EXPECT_EQ(console.run("orders").value.at(0)["state"], "applied") << "and programs get the data";
  EXPECT_THAT(text_of("jobs"), StartsWith("no job scripts"));
  EXPECT_THAT(text_of("undo"), StartsWith("undo(): puts back"));
  EXPECT_EQ(text_of("ckpt.save"), "ckpt.save(): help of ckpt.save");
  EXPECT_EQ(text_of("pairs"), "pairs(…): a function of Lua 5.4");
  EXPECT_EQ(text_of("math.floor"), "math.floor(…): a function of Lua 5.4");
  EXPECT_THAT(text_of("math"), StartsWith("math: abs acos"));
  EXPECT_EQ(text_of("function double(x, ...) return 2 * x end return double"),
            "function(x, …), line 1 of chunk");
  EXPECT_EQ(text_of("return coroutine.create(print)"), "a coroutine");
  text_of("print(undo)");
  EXPECT_THAT(console.out, StartsWith("undo(): puts back"));
  EXPECT_THAT(error_of("getmetatable(print).__tostring = nil"), HasSubstr("index"));
}

TEST_F(Catalogue, NamesAreUniqueAndExamplesBeginWithThem) {
  std::set<std::string> names;
  for (const FunctionDoc& function : lua::catalogue_docs()) {
    EXPECT_TRUE(names.insert(function.name).second) << function.name;
    EXPECT_STRNE(function.help, "") << function.name;
    if (*function.example != '\0') {
      EXPECT_THAT(function.example, StartsWith(function.name));
    }
  }
  EXPECT_GT(names.size(), 30U);
  EXPECT_EQ(lua::find_registration("no.such"), nullptr);
  EXPECT_STREQ(lua::find_registration("run.wait")->doc.name, "run.wait");
}

TEST_F(Catalogue, NoChunkReplacesANameOrAddsOne) {
  EXPECT_THAT(error_of("undo = 5"), HasSubstr("'undo' is footplate's own name"));
  EXPECT_THAT(error_of("run.wait = 5"), HasSubstr("unknown setting 'run.wait'"));
}

TEST_F(Catalogue, WhatIsLeftOfARun) {
  EXPECT_EQ(text_of("return run.left()"), "1188 steps");
  EXPECT_EQ(text_of("return run.left().seconds"), "");
  console.status["eta_s"] = 200.25;
  EXPECT_EQ(text_of("return run.left()"), "1188 steps, 3 min 20 s");
  EXPECT_EQ(text_of("return run.left().steps, run.left().seconds"), "1188\n200.25");
  console.status["step"] = 2001;
  EXPECT_EQ(text_of("return run.left().steps"), "0");
}

}  // namespace
}  // namespace footplate::test
