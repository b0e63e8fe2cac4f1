#include "protocol/gone_settings.h"

#include "fixture.h"

namespace footplate {
namespace {

using test::message;
using test::small_schema;

Schema schema_of_edited_task() {
  Schema schema = small_schema();
  SettingSpec spec = schema.settings.front();
  spec.name = "task.noise_sd";
  spec.aliases = {"noise"};
  schema.settings.push_back(spec);
  spec.name = "task.rate";
  spec.aliases = {};
  schema.settings.push_back(spec);
  return schema;
}

TEST(GoneSettings, OfATaskAreLeftOutAndTold) {
  const Schema schema = schema_of_edited_task();
  Json json = Settings::defaults(schema).to_json();
  json["task.noise"] = {{"value", 0.3}, {"source", "digits.lua:4"}};
  json["task.data"] = {{"value", "x.csv"}, {"source", "default"}};
  json["task.rat"] = {{"value", 2}, {"source", "order 3 (ann)"}};
  std::vector<GoneSetting> gone;
  const auto settings = earlier_settings_from_json(json, schema, &gone);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->to_json(), Settings::defaults(schema).to_json());
  ASSERT_EQ(gone.size(), 3U);
  EXPECT_EQ(
      left_out_text(schema, gone[0]),
      "task.data is left out: the task doesn't declare it any more. It stood at its default, \"x.csv\"");
  EXPECT_EQ(
      left_out_text(schema, gone[1]),
      "task.noise is left out: the task doesn't declare it any more. It was 0.3 (digits.lua:4); if it is "
      "called task.noise_sd now, set that: task.noise_sd=0.3");
  EXPECT_EQ(left_out_text(schema, gone[2]),
            "task.rat is left out: the task doesn't declare it any more. It was 2 (order 3 (ann)); if it is "
            "called task.rate now, set that: task.rate=2");
  EXPECT_TRUE(earlier_settings_from_json(json, schema)) << "for those who tell of nothing";
}

TEST(GoneSettings, OfADataSetAndOfAModelAreLeftOut) {
  Schema schema = schema_of_edited_task();
  SettingSpec spec = schema.settings.front();
  spec.name = "data.share.digits";
  schema.settings.push_back(spec);
  Json json = Settings::defaults(schema).to_json();
  json["data.share.digit"] = {{"value", 2}, {"source", "order 3 (ann)"}};
  json["model.depth"] = {{"value", 7}, {"source", "default"}};
  std::vector<GoneSetting> gone;
  EXPECT_TRUE(earlier_settings_from_json(json, schema, &gone));
  ASSERT_EQ(gone.size(), 2U);
  EXPECT_EQ(
      left_out_text(schema, gone[0]),
      "data.share.digit is left out: the task doesn't declare it any more. It was 2 (order 3 (ann)); if it "
      "is called data.share.digits now, set that: data.share.digits=2");
}

TEST(GoneSettings, OfEarlierVersionsAreLeftOut) {
  const Schema schema = schema_of_edited_task();
  std::vector<GoneSetting> gone;
  const Json default_one = {{"log.memory", {{"value", false}, {"source", "default"}}}};
  const Json set_one = {{"log.memory", {{"value", true}, {"source", "order 3 (ann)"}}}};
  EXPECT_TRUE(earlier_settings_from_json(default_one, schema, &gone));
  EXPECT_EQ(gone.size(), 0U) << "nobody misses it";
  EXPECT_TRUE(earlier_settings_from_json(set_one, schema, &gone));
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(left_out_text(schema, gone[0]),
            "log.memory is left out: this version of footplate doesn't have it. It was true (order 3 (ann))");
}

TEST(GoneSettings, OfFootplateAreErrors) {
  const Schema schema = schema_of_edited_task();
  const Json json = {{"log.evry", {{"value", 3}, {"source", "default"}}}};
  EXPECT_EQ(message(earlier_settings_from_json(json, schema)),
            "unknown setting 'log.evry'; did you mean log.every?");
  EXPECT_FALSE(is_gone(schema, "log.evry"));
  EXPECT_FALSE(is_gone(schema, "task.rate"));
  EXPECT_EQ(message(earlier_settings_from_json(Json::array(), schema)), "settings have to be an object");
}

TEST(GoneSettings, AreDamageWhereTheyHaveNoValue) {
  const Schema schema = schema_of_edited_task();
  EXPECT_EQ(message(earlier_settings_from_json({{"task.noise", 3}}, schema)),
            "setting 'task.noise' has no value");
}

}  // namespace
}  // namespace footplate
