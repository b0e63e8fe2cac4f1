#include "fixture.h"

namespace footplate {
namespace {

using test::message;
using test::small_schema;

TEST(SchemaJson, RoundTripKeepsEverything) {
  Schema schema = small_schema();
  schema.settings[0].usual = {5, 100, false};
  schema.settings[0].example = "log.every = 5";
  schema.settings[0].role = Role::operate;
  schema.actions[0].states = {"running"};
  schema.actions[0].dangerous = true;
  schema.actions[0].result = "path";
  schema.actions[0].params[1].unit = "pieces";
  const Json json = schema.to_json();
  const auto again = Schema::from_json(json);
  ASSERT_TRUE(again) << message(again);
  EXPECT_EQ(again->to_json(), json);
  EXPECT_EQ(again->setting("log.every")->usual.max, 100);
  EXPECT_TRUE(again->setting("sched.base_lr")->range.exclusive_min);
  EXPECT_EQ(again->setting("optim.lr")->knobs.size(), 2u);
  EXPECT_EQ(again->setting("model.width")->applies, Applies::fixed);
  EXPECT_EQ(again->setting("log.rank_only")->scope, Scope::rank);
  EXPECT_FALSE(again->action("ckpt.save")->params[0].default_value);
  EXPECT_EQ(again->constraints.size(), 2u);
}

TEST(SchemaJson, MalformedIsAnError) {
  for (const char* text :
       {"1", "[]", "{}", R"({"settings":1,"actions":[]})", R"({"settings":[{}],"actions":[]})",
        R"({"settings":[{"name":"a","type":"tensor","default":1}],"actions":[]})",
        R"({"settings":[{"name":"a","type":"integer","default":"x"}],"actions":[]})",
        R"({"settings":[{"name":"a","type":"integer","default":1,"role":"root"}],"actions":[]})",
        R"({"settings":[{"name":"a","type":"integer","default":1,"range":{"min":"x"}}],"actions":[]})",
        R"({"settings":[],"actions":[{"params":[]}]})"}) {
    const auto schema = Schema::from_json(Json::parse(text));
    ASSERT_FALSE(schema) << text;
    EXPECT_EQ(schema.error().message.find("malformed schema: "), 0u);
  }
}

TEST(SchemaJson, FieldsOfALaterVersionAreIgnored) {
  Json json = small_schema().to_json();
  json["later"] = 1;
  json["settings"][0]["later"] = 1;
  EXPECT_TRUE(Schema::from_json(json));
}

}  // namespace
}  // namespace footplate
