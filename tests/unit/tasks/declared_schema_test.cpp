#include "runtime/tasks/declared_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;

std::string refusal_of_metric(const std::string& name) {
  const auto schema = with_declared(runtime_schema(), {.metrics = {{.name = name}}}, "plugin:a.so");
  return schema ? "" : schema.error().message;
}

TEST(DeclaredSchema, AMetricHasNoNameOfFootplatesOwn) {
  EXPECT_EQ(refusal_of_metric("accuracy"), "");
  for (const char* own : {"loss", "best", "lr", "seconds"})
    EXPECT_THAT(refusal_of_metric(own),
                HasSubstr("the metric '" + std::string(own) + "': footplate has one"));
}

std::string refusal_of_sets(const std::vector<v1::SetDecl>& sets) {
  const auto schema = with_declared(runtime_schema(), {.sets = sets}, "plugin:a.so");
  return schema ? "" : schema.error().message;
}

TEST(DeclaredSchema, EachOfSeveralDataSetsHasAShare) {
  const auto schema = with_declared(
      runtime_schema(), {.sets = {{.name = "big", .share = 2, .help = "Many."}, {.name = "small"}}}, "a.so");
  ASSERT_TRUE(schema.has_value()) << schema.error().message;
  const SettingSpec* share = schema->setting("data.share.big");
  ASSERT_NE(share, nullptr);
  EXPECT_EQ(share->default_value, Value(2.0));
  EXPECT_THAT(share->help, HasSubstr("Many. Of each step's batch"));
  EXPECT_FALSE(schema->check("data.share.small", -1).has_value());
  EXPECT_THAT(schema->unknown_setting("data.share.smal"), HasSubstr("did you mean data.share.small?"));
  const auto one = with_declared(runtime_schema(), {.sets = {{.name = "only"}}}, "a.so");
  EXPECT_EQ(one->setting("data.share.only"), nullptr) << "one set is no mixture";
}

TEST(DeclaredSchema, DataSetsThatCanNotBeAreRefused) {
  EXPECT_THAT(refusal_of_sets({{.name = "a"}, {.name = "a"}}), HasSubstr("'a' is declared twice"));
  EXPECT_THAT(refusal_of_sets({{.name = "A set"}}), HasSubstr("lower-case letters"));
  EXPECT_THAT(refusal_of_sets({{.name = "set"}}), HasSubstr("no word of Lua's"));
  EXPECT_THAT(refusal_of_sets({{.name = "a", .share = -1}, {.name = "b"}}), HasSubstr("has the share -1"));
}

std::string refusal_of_setting(const v1::SettingDecl& setting) {
  const auto schema = with_declared(runtime_schema(), {.settings = {setting}}, "plugin:a.so");
  return schema ? "" : schema.error().message;
}

TEST(DeclaredSchema, WhatIsUsualIsAllowed) {
  EXPECT_EQ(refusal_of_setting({.name = "rate",
                                .initial = "0.5",
                                .help = "A rate.",
                                .min = 0,
                                .max = 1,
                                .usual_min = 0,
                                .usual_max = 1}),
            "");
  EXPECT_EQ(refusal_of_setting({.name = "rate", .initial = "0.5", .help = "A rate.", .usual_max = 3}), "");
  for (const v1::SettingDecl& wrong :
       {v1::SettingDecl{
            .name = "rate", .initial = "0.5", .help = "A rate.", .min = 0, .max = 1, .usual_max = 2},
        v1::SettingDecl{
            .name = "rate", .initial = "0.5", .help = "A rate.", .min = 0, .max = 1, .usual_min = -1},
        v1::SettingDecl{.name = "rate", .initial = "5", .help = "A rate.", .min = 4, .usual_max = 3}})
    EXPECT_THAT(refusal_of_setting(wrong), HasSubstr("the setting 'rate' has the usual range"));
  EXPECT_THAT(refusal_of_setting(
                  {.name = "rate", .initial = "0.5", .help = "A rate.", .usual_min = 2, .usual_max = 1}),
              HasSubstr("has the range 2 to 1"));
}

TEST(DeclaredSchema, ChoicesAreOfATextAndARangeOfANumber) {
  EXPECT_EQ(
      refusal_of_setting({.name = "rate", .initial = "\"a\"", .help = "A rate.", .choices = {"a", "b"}}), "");
  for (const char* initial : {"0.5", "2", "true"})
    EXPECT_THAT(refusal_of_setting(
                    {.name = "rate", .initial = initial, .help = "A rate.", .choices = {"0.5", "2", "true"}}),
                HasSubstr("has choices, and its initial value " + std::string(initial) + " is no text"));
  for (const char* initial : {"\"a\"", "true"})
    EXPECT_THAT(refusal_of_setting({.name = "rate", .initial = initial, .help = "A rate.", .usual_max = 1}),
                HasSubstr("has a range, and"));
}

}  // namespace
}  // namespace footplate
