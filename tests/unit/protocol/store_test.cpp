#include "protocol/store.h"

#include <gmock/gmock.h>

#include "fixture.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;

Result<void> store_text(Json& store, const std::string& text) {
  return apply_store(store, {{"name", "x"}, {"value", text}});
}

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(Store, TakesJsonAndForgetsWithNull) {
  Json store = Json::object();
  ASSERT_TRUE(store_text(store, R"({"a": [1, 2]})"));
  EXPECT_EQ(store, Json::parse(R"({"x": {"a": [1, 2]}})"));
  ASSERT_TRUE(store_text(store, "null"));
  EXPECT_TRUE(store.empty());
}

/// A value goes into manifests and events, and through every rank: what any of them can't read is refused.
TEST(Store, RefusesWhatNestsTooDeeply) {
  Json store = Json::object();
  EXPECT_TRUE(store_text(store, nested(32)));
  for (const std::size_t levels : {33U, 63U, 30'000U}) {
    const auto stored = store_text(store, nested(levels));
    ASSERT_FALSE(stored) << levels;
    EXPECT_THAT(stored.error().message, HasSubstr("nested deeper than 32 levels"));
  }
  EXPECT_EQ(store["x"].dump(), nested(32));
}

TEST(Store, RefusesWhatIsTooLargeBeforeItIsRead) {
  Json store = Json::object();
  const auto stored = store_text(store, nested(100'000));
  ASSERT_FALSE(stored);
  EXPECT_THAT(stored.error().message, HasSubstr("has 200000 bytes; store may have 65536"));
  EXPECT_FALSE(store_text(store, "{"));
  EXPECT_FALSE(apply_store(store, {{"name", std::string(129, 'n')}, {"value", "1"}}));
  EXPECT_TRUE(store.empty());
}

TEST(Store, WhatIsKeptIsPutIntoAnother) {
  Json store = Json::object();
  const auto apply = [&](const char* name, const char* value, bool keep) {
    ASSERT_TRUE(apply_store(store, {{"name", name}, {"value", value}, {"keep", keep}}));
  };
  EXPECT_EQ(kept_in_store(store), Json::object());
  apply("x", "1", true);
  apply("y", "2", false);
  apply("z", "3", true);
  apply("x", "4", false);  // stays kept
  apply("z", "null", false);
  EXPECT_EQ(kept_in_store(store), Json({{"x", 4}}));
  Json other = {{"x", 0}, {"y", 7}};
  take_kept(other, kept_in_store(store));
  EXPECT_EQ(other["x"], 4);
  EXPECT_EQ(other["y"], 7);
  EXPECT_EQ(kept_in_store(other), Json({{"x", 4}})) << "and survives the next one, too";
  take_kept(other, Json());  // of a load before there was any
  EXPECT_EQ(other["x"], 4);
}

/// An exception here would end every rank.
TEST(Store, TheListOfKeptNamesIsNobodysToSet) {
  Json store = Json::object();
  for (const bool keep : {false, true}) {
    const auto stored = apply_store(store, {{"name", "@keep"}, {"value", "5"}, {"keep", keep}});
    ASSERT_FALSE(stored);
    EXPECT_THAT(stored.error().message, HasSubstr("store.@keep is footplate's own"));
  }
  EXPECT_TRUE(store.empty());
  store = {{"@keep", 5}, {"x", 1}};  // of a checkpoint in which somebody has set it
  Json other = store;
  ASSERT_TRUE(apply_store(store, {{"name", "x"}, {"value", "null"}}));
  ASSERT_TRUE(apply_store(store, {{"name", "y"}, {"value", "2"}, {"keep", true}}));
  EXPECT_EQ(kept_in_store(store), Json({{"y", 2}}));
  take_kept(other, kept_in_store(store));
  EXPECT_EQ(kept_in_store(other), Json({{"y", 2}}));
}

}  // namespace
}  // namespace footplate
