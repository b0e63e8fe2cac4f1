#include "protocol/settings.h"

#include "fixture.h"

namespace footplate {
namespace {

using test::message;
using test::small_schema;

class SettingsTest : public testing::Test {
 protected:
  Schema schema_ = small_schema();
  Settings settings_ = Settings::defaults(schema_);
};

TEST_F(SettingsTest, DefaultsAndTypedReads) {
  EXPECT_EQ(settings_.all().size(), schema_.settings.size());
  EXPECT_EQ(settings_.integer("log.every"), 10);
  EXPECT_EQ(settings_.number("sched.base_lr"), 1e-3);
  EXPECT_EQ(settings_.string("sched.kind"), "cosine");
  EXPECT_FALSE(settings_.boolean("log.verbose"));
  EXPECT_EQ(settings_.numbers("optim.betas").size(), 2u);
  EXPECT_EQ(settings_.source("log.every"), "default");
  EXPECT_FALSE(settings_.has("log.evry"));
  EXPECT_THROW(static_cast<void>(settings_.value("log.evry")), std::logic_error);
}

TEST_F(SettingsTest, DigestIsOfValuesAndNothingElse) {
  const std::string before = settings_.digest(schema_);
  EXPECT_EQ(before.size(), 16u);
  Settings other = settings_;
  other.set("log.every", std::int64_t{10}, "order 3 (ann)");
  EXPECT_EQ(other.digest(schema_), before) << "sources don't enter";
  other.set("optim.lr", 0.5, "computed");
  EXPECT_EQ(other.digest(schema_), before) << "nor what is computed";
  for (const auto& [name, value] :
       std::map<std::string, Value>{{"log.every", std::int64_t{11}},
                                    {"sched.base_lr", 1.0000000000000002e-3},
                                    {"sched.kind", std::string("linear")},
                                    {"optim.betas", std::vector<double>{0.9, 0.98}},
                                    {"log.text", std::string("hello\nlog.every=11")}}) {
    Settings changed = settings_;
    changed.set(name, value, "x");
    EXPECT_NE(changed.digest(schema_), before) << name;
  }
}

TEST_F(SettingsTest, DigestIsTheSameInEveryVersion) {
  // Ranks of one run share a build; checkpoints and journals don't: a change here needs a reason.
  // The schema that it was pinned with had all but one of these in the digest.
  std::erase_if(schema_.settings, [](const SettingSpec& spec) { return spec.name == "log.verbose"; });
  EXPECT_EQ(settings_.digest(schema_), "7e8c5a506d886e83") << "pinned";
}

TEST_F(SettingsTest, ACommandLineKnowsItsStart) {
  EXPECT_EQ(start_of_command_line(command_line_of(12)), 12);
  EXPECT_GT(start_of_command_line("command line"), 1'000'000) << "this start's: newer than all before";
  for (const char* other : {"", "default", "command line of start ", "order 12 (ann)", "kjv.lua:3"})
    EXPECT_EQ(start_of_command_line(other), 0) << other;
}

TEST_F(SettingsTest, JsonRoundTrip) {
  settings_.set("log.every", std::int64_t{50}, "order 12 (ann)");
  settings_.set("sched.base_lr", 0.1, "kjv.lua");
  const auto again = Settings::from_json(settings_.to_json(), schema_);
  ASSERT_TRUE(again) << message(again);
  EXPECT_EQ(again->to_json(), settings_.to_json());
  EXPECT_EQ(again->digest(schema_), settings_.digest(schema_));
  EXPECT_EQ(again->source("log.every"), "order 12 (ann)");
}

TEST_F(SettingsTest, FromJsonFillsInAndRefuses) {
  const auto read = [&](const char* text) { return Settings::from_json(Json::parse(text), schema_); };
  EXPECT_EQ(read(R"({"log.every":{"value":5}})")->integer("log.every"), 5);
  EXPECT_EQ(read(R"({"log.every":{"value":5}})")->string("sched.kind"), "cosine");
  EXPECT_EQ(message(read("[]")), "settings have to be an object");
  EXPECT_EQ(message(read(R"({"log.every":5})")), "setting 'log.every' has no value");
  EXPECT_EQ(message(read(R"({"log.evry":{"value":5}})")),
            "unknown setting 'log.evry'; did you mean log.every?");
  EXPECT_EQ(message(read(R"({"log.every":{"value":0}})")), "log.every can't be 0; allowed: 1 to 1000 steps");
  EXPECT_EQ(message(read(R"({"log.every":{"value":5,"source":7}})")),
            "setting 'log.every' has a source that isn't a string");
}

}  // namespace
}  // namespace footplate
