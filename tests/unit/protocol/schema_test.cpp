#include "fixture.h"
#include "protocol/settings.h"

namespace footplate {
namespace {

using test::message;
using test::small_schema;

class SchemaTest : public testing::Test {
 protected:
  std::string check(const char* name, const Json& value) { return message(schema_.check(name, value)); }
  std::string text(const char* name, const char* value) {
    const auto result = schema_.check_text(name, value);
    return result ? to_text(*result) : result.error().message;
  }
  Schema schema_ = small_schema();
};

TEST_F(SchemaTest, UnknownNamesAreAnsweredWithTheNearest) {
  EXPECT_EQ(check("log.evry", 1), "unknown setting 'log.evry'; did you mean log.every?");
  EXPECT_EQ(check("log.eveyr", 1), "unknown setting 'log.eveyr'; did you mean log.every?");
  EXPECT_EQ(check("log_interval", 1), "unknown setting 'log_interval'; it is called log.every");
  EXPECT_EQ(check("log.log_interval", 1), "unknown setting 'log.log_interval'; it is called log.every");
  EXPECT_EQ(check("lr", 1), "unknown setting 'lr'; it is called sched.base_lr or optim.lr_scale");
  EXPECT_EQ(check("ckpt.save", 1), "'ckpt.save' is an action, not a setting: call it, ckpt.save()");
  EXPECT_EQ(check("model.something_else", 1),
            "unknown setting 'model.something_else'; model has model.width, model.heads");
  EXPECT_EQ(check("frobnicate_the_whole_thing", 1),
            "unknown setting 'frobnicate_the_whole_thing'; settings() lists them all");
  EXPECT_EQ(check("", 1).find("unknown setting ''"), 0u);
  EXPECT_EQ(schema_.check("nope", 1).error().kind, ErrorKind::usage);
}

TEST_F(SchemaTest, ANameOfAMegabyteIsntRepeated) {
  const std::string name(1 << 20, 'l');
  const std::string said = schema_.unknown_setting(name) + schema_.unknown_action(name);
  EXPECT_LT(said.size(), 1000u);
}

TEST_F(SchemaTest, RangesAreNamed) {
  EXPECT_EQ(check("log.every", 0), "log.every can't be 0; allowed: 1 to 1000 steps");
  EXPECT_EQ(check("log.every", 1001), "log.every can't be 1001; allowed: 1 to 1000 steps");
  EXPECT_EQ(check("log.every", "x"),
            "log.every expects a whole number, got the string \"x\" (1 to 1000 steps)");
  EXPECT_EQ(check("log.every", 1), "accepted");
  EXPECT_EQ(check("log.every", 1000), "accepted");
  EXPECT_EQ(check("sched.base_lr", 0), "sched.base_lr can't be 0; allowed: above 0, at most 1");
  EXPECT_EQ(check("sched.base_lr", 1), "accepted");
  EXPECT_EQ(check("optim.lr_scale", -0.5), "optim.lr_scale can't be -0.5; allowed: at least 0");
  EXPECT_EQ(check("optim.lr_scale", "@nan"), "optim.lr_scale expects a number, got NaN (at least 0)");
  EXPECT_EQ(check("optim.betas", Json::array({0.9, 1.0})), "optim.betas can't be 1; allowed: 0 to 0.999");
  EXPECT_EQ(check("optim.betas", Json::array({0.9})), "optim.betas is a list of 2 numbers, got 1");
}

TEST_F(SchemaTest, LengthsOfStringsAreNamed) {
  schema_.settings[1].range = {0, 5, false};
  schema_.settings[1].unit = "characters";
  EXPECT_EQ(check("log.text", "hello"), "accepted");
  EXPECT_EQ(check("log.text", "hello!"), "log.text can't have 6 characters; allowed: 0 to 5 characters");
}

TEST_F(SchemaTest, ChoicesAreNamed) {
  EXPECT_EQ(check("sched.kind", "linear"), "accepted");
  EXPECT_EQ(check("sched.kind", "linea"),
            "sched.kind can't be 'linea'; it is one of cosine, linear, constant; did you mean 'linear'?");
  EXPECT_EQ(check("sched.kind", "zigzagging"),
            "sched.kind can't be 'zigzagging'; it is one of cosine, linear, constant");
  EXPECT_EQ(check("sched.kind", 3), "sched.kind expects a string, got 3 (one of cosine, linear, constant)");
}

TEST_F(SchemaTest, LiveChangesOfFixedAndComputedSettingsSayWhatToDo) {
  EXPECT_EQ(message(schema_.check_live("log.every", 5)), "accepted");
  EXPECT_EQ(message(schema_.check_live("optim.lr", 1)),
            "optim.lr is computed and can't be set; set sched.base_lr or optim.lr_scale");
  EXPECT_EQ(message(schema_.check_live("model.width", 64)),
            "model.width is fixed for the life of a run; set it in a config or as model.width=… on the "
            "command line of a new run");
  EXPECT_EQ(message(schema_.check_live("log.evry", 5)),
            "unknown setting 'log.evry'; did you mean log.every?");
}

TEST_F(SchemaTest, TextOfACommandLine) {
  EXPECT_EQ(text("log.every", "5"), "5");
  EXPECT_EQ(text("log.every", "5.0"), "5");
  EXPECT_EQ(text("sched.base_lr", "3e-4"), "3e-4");
  EXPECT_EQ(text("sched.base_lr", ".5"),
            "sched.base_lr expects a number, got the string \".5\"; write 0.5 (above 0, at most 1)");
  EXPECT_EQ(text("log.verbose", "true"), "true");
  EXPECT_EQ(text("sched.kind", "linear"), "\"linear\"");
  EXPECT_EQ(text("log.text", "5"), "\"5\"");
  EXPECT_EQ(text("log.text", ""), "\"\"");
  EXPECT_EQ(text("run.time_limit", "30m"), "1800");
  for (const char* betas : {"{0.9, 0.95}", "[0.9,0.95]", "0.9,0.95", "0.9, 0.95"})
    EXPECT_EQ(text("optim.betas", betas), "{0.9, 0.95}");
  EXPECT_EQ(text("log.every", ""),
            "log.every expects a whole number, got the string \"\"; nothing is given (1 to 1000 steps)");
  EXPECT_EQ(text("log.every", "ten"),
            "log.every expects a whole number, got the string \"ten\" (1 to 1000 steps)");
  EXPECT_EQ(text("optim.betas", "x"),
            "optim.betas expects a list of numbers, got the string \"x\" (0 to 0.999)");
}

TEST_F(SchemaTest, Arguments) {
  const auto check = [&](const char* action, const Json& arguments) {
    const auto result = schema_.check_arguments(action, arguments);
    return result ? result->dump() : result.error().message;
  };
  EXPECT_EQ(check("ckpt.save", Json::object()), R"({"copies":1})");
  EXPECT_EQ(check("ckpt.save", Json()), R"({"copies":1})");
  EXPECT_EQ(check("ckpt.save", Json::array()), R"({"copies":1})");  // an empty Lua table
  EXPECT_EQ(check("ckpt.save", {{"tag", "x"}, {"copies", 2}, {"force", true}}),
            R"({"copies":2,"force":true,"tag":"x"})");
  EXPECT_EQ(check("ckpt.save", {{"tg", "x"}}), "ckpt.save has no argument 'tg'; did you mean tag?");
  EXPECT_EQ(check("ckpt.save", {{"elsewhere", "x"}}),
            "ckpt.save has no argument 'elsewhere'; it takes tag, copies");
  EXPECT_EQ(check("run.pause", {{"elsewhere", "x"}}), "run.pause has no argument 'elsewhere'; it takes none");
  EXPECT_EQ(check("ckpt.save", {{"copies", 9}}), "ckpt.save copies can't be 9; allowed: 1 to 3");
  EXPECT_EQ(check("ckpt.save", {{"tag", 5}}), "ckpt.save tag expects a string, got 5");
  EXPECT_EQ(check("ckpt.save", 5), "ckpt.save takes named arguments: ckpt.save{ tag = \"x\" }");
  EXPECT_EQ(check("ckpt.sav", Json()), "unknown action 'ckpt.sav'; did you mean ckpt.save?");
  EXPECT_EQ(check("frobnicate", Json()), "unknown action 'frobnicate'; the actions are ckpt.save, run.pause");
}

TEST_F(SchemaTest, Combinations) {
  Settings settings = Settings::defaults(schema_);
  EXPECT_TRUE(schema_.check_combination(settings));
  settings.set("model.heads", std::int64_t{3}, "kjv.lua");
  EXPECT_EQ(message(schema_.check_combination(settings)),
            "model.width (128, from default) is not divisible by model.heads (3, from kjv.lua): every head "
            "gets an equal part");
  settings.set("model.heads", std::int64_t{0}, "kjv.lua");
  EXPECT_FALSE(schema_.check_combination(settings));  // and no division by zero
  settings.set("model.heads", std::int64_t{-1}, "kjv.lua");
  settings.set("model.width", std::numeric_limits<std::int64_t>::min(), "kjv.lua");
  EXPECT_FALSE(schema_.check_combination(settings));  // at_most; and no overflow in the division
  settings = Settings::defaults(schema_);
  settings.set("log.every", std::int64_t{200}, "order 3 (ann)");
  EXPECT_EQ(
      message(schema_.check_combination(settings)),
      "log.every (200, from order 3 (ann)) is larger than model.width (128, from default): for the test");
}

TEST_F(SchemaTest, CombinationsWhereZeroLeavesItToALibrary) {
  schema_.constraints = {
      {Constraint::Kind::at_most_where_set, "model.width", "model.heads", "nothing is in between"}};
  Settings settings = Settings::defaults(schema_);
  EXPECT_EQ(message(schema_.check_combination(settings)),
            "model.width (128, from default) is larger than model.heads (4, from default): nothing is in "
            "between");
  settings.set("model.heads", std::int64_t{0}, "kjv.lua");
  EXPECT_TRUE(schema_.check_combination(settings));
  settings.set("model.heads", std::int64_t{4}, "kjv.lua");
  settings.set("model.width", std::int64_t{0}, "kjv.lua");
  EXPECT_TRUE(schema_.check_combination(settings));
}

TEST_F(SchemaTest, CombinationsByTheirProduct) {
  schema_.constraints = {
      {Constraint::Kind::product_at_most, "model.width", "model.heads", "there are no more", 512}};
  Settings settings = Settings::defaults(schema_);
  EXPECT_TRUE(schema_.check_combination(settings));
  settings.set("model.heads", std::int64_t{5}, "kjv.lua");
  EXPECT_EQ(message(schema_.check_combination(settings)),
            "model.width (128, from default) times model.heads (5, from kjv.lua) is more than 512: there are "
            "no more");
  settings.set("model.heads", std::numeric_limits<std::int64_t>::max(), "kjv.lua");
  EXPECT_FALSE(schema_.check_combination(settings));  // and no overflow
}

TEST_F(SchemaTest, AChoiceThatNeedsTheSameOfAnother) {
  schema_.constraints = {{Constraint::Kind::needs, "log.text", "log.other", "for the test", 0, "bf16"}};
  SettingSpec other = *schema_.setting("log.text");
  other.name = "log.other";
  schema_.settings.push_back(other);
  Settings settings = Settings::defaults(schema_);
  EXPECT_TRUE(schema_.check_combination(settings));
  settings.set("log.text", std::string("bf16"), "kjv.lua");
  EXPECT_THAT(message(schema_.check_combination(settings)),
              testing::HasSubstr("log.text (bf16, from kjv.lua) needs the same of log.other ("));
  settings.set("log.other", std::string("bf16"), "kjv.lua");
  EXPECT_TRUE(schema_.check_combination(settings));
  const auto again = Schema::from_json(schema_.to_json());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->constraints[0].value, "bf16");
}

TEST_F(SchemaTest, CombinationsOfRulesWithChannels) {
  schema_.constraints = {
      {Constraint::Kind::channels_at_most, "log.text", "model.heads", "every communicator has so many"}};
  Settings settings = Settings::defaults(schema_);
  EXPECT_TRUE(schema_.check_combination(settings)) << "no rules at all: their own check refuses them";
  settings.set("log.text", std::string("..1MiB tree ll; ring 4 channels"), "kjv.lua");
  EXPECT_TRUE(schema_.check_combination(settings));
  settings.set("log.text", std::string("..1MiB tree ll; ring 5 channels"), "kjv.lua");
  EXPECT_EQ(message(schema_.check_combination(settings)),
            "log.text (all_reduce ring 5 channels, from kjv.lua) has more channels than model.heads (4, from "
            "default): every communicator has so many");
}

TEST_F(SchemaTest, AllowedInWords) {
  EXPECT_EQ(allowed(*schema_.setting("log.every")), "1 to 1000 steps");
  EXPECT_EQ(allowed(*schema_.setting("sched.base_lr")), "above 0, at most 1");
  EXPECT_EQ(allowed(*schema_.setting("sched.kind")), "one of cosine, linear, constant");
  EXPECT_EQ(allowed(*schema_.setting("log.verbose")), "true or false");
  EXPECT_EQ(allowed(*schema_.setting("log.text")), "string");
  EXPECT_EQ(allowed(*schema_.setting("run.time_limit")), "s");
}

TEST(Nearest, IsNearOrNothing) {
  const std::vector<std::string> names{"train.steps", "train.batch_size", "eval.every"};
  EXPECT_EQ(nearest("train.step", names), "train.steps");
  EXPECT_EQ(nearest("eval.evrey", names), "eval.every");
  EXPECT_EQ(nearest("something", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Role, Names) {
  for (const Role role : {Role::view, Role::operate, Role::admin})
    EXPECT_EQ(role_from_string(to_string(role)).value(), role);
  EXPECT_EQ(message(role_from_string("root")), "unknown role 'root'; it is one of view, operate, admin");
}

}  // namespace
}  // namespace footplate
