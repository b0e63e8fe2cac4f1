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
  schema.actions[0].dangerous = true;
  schema.actions[0].result = "path";
  schema.actions[0].params[1].unit = "pieces";
  schema.constraints.push_back(
      {Constraint::Kind::product_at_most, "log.every", "model.width", "for the test", 5000});
  const Json json = schema.to_json();
  const auto again = Schema::from_json(json);
  ASSERT_TRUE(again) << message(again);
  EXPECT_EQ(again->to_json(), json);
  EXPECT_EQ(again->setting("log.every")->usual.max, 100);
  EXPECT_TRUE(again->setting("sched.base_lr")->range.exclusive_min);
  EXPECT_EQ(again->setting("optim.lr")->knobs.size(), 2u);
  EXPECT_EQ(again->setting("model.width")->applies, Applies::fixed);
  EXPECT_FALSE(again->action("ckpt.save")->params[0].default_value);
  ASSERT_EQ(again->constraints.size(), 3u);
  EXPECT_EQ(again->constraints[1].kind, Constraint::Kind::at_most);
  EXPECT_EQ(again->constraints[2].limit, 5000);
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
  json["constraints"].push_back({{"kind", "later"}, {"a", "log.every"}, {"b", "log.text"}});
  const auto schema = Schema::from_json(json);
  ASSERT_TRUE(schema) << message(schema);
  EXPECT_EQ(schema->constraints.size(), 2u) << "the run checks it";
}

}  // namespace
}  // namespace footplate
