// What is registered is there, once, and told of as it is written.
#include "console/lua/api/catalogue.h"

#include <gmock/gmock.h>

#include "fake_console.h"

namespace footplate::test {
namespace {

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
  EXPECT_THAT(error_of("undo = 5"), testing::HasSubstr("'undo' is footplate's own name"));
  EXPECT_THAT(error_of("run.wait = 5"), testing::HasSubstr("unknown setting 'run.wait'"));
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
