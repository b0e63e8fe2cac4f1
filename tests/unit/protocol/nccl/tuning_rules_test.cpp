#include "protocol/nccl/tuning_rules.h"

#include <gmock/gmock.h>

#include "protocol/schema.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using testing::HasSubstr;

std::string read(const std::string& text) {
  const auto rules = tuning_rules_from_string(text);
  if (!rules) return rules.error().message;
  std::string all;
  for (const TuningRule& rule : *rules) all += (all.empty() ? "" : "; ") + to_string(rule);
  return all;
}

TEST(TuningRules, AreWordsInAnyOrder) {
  EXPECT_EQ(read("..1MiB tree ll; 64MiB.. ring simple 8 channels;"),
            "all_reduce ..1MiB tree ll; all_reduce 64MiB.. ring simple 8 channels");
  EXPECT_EQ(read("simple, all_gather: 1KiB..1GiB"), "all_gather 1KiB..1GiB simple");
  EXPECT_EQ(read("no_ll128 0..4097"), "all_reduce ..4097 no_ll128");
  EXPECT_EQ(read(" ; "), "");
  const auto rules = tuning_rules_from_string("1.5KiB..2KiB nvls_tree").value();
  EXPECT_EQ(rules.at(0).min_bytes, 1536u);
  EXPECT_EQ(rules.at(0).max_bytes, 2048u) << "inclusive";
  EXPECT_EQ(rules.at(0).algorithm, Algorithm::nvls_tree);
}

TEST(TuningRules, ReadBackAsTheyAreSaid) {
  for (const char* text : {"..1MiB tree ll; 64MiB.. ring simple 8 channels", "reduce 3..5 no_ll128", "pat"}) {
    const auto rules = tuning_rules_from_string(text).value();
    EXPECT_EQ(tuning_rules_from_string(read(text)).value(), rules) << text;
  }
}

TEST(TuningRules, SayWhatIsWrongAndWhere) {
  EXPECT_THAT(read("ring; ..1MiB rign"),
              HasSubstr("rule 2 (..1MiB rign): 'rign' is no size (..1MiB), algorithm (tree, "));
  EXPECT_THAT(read("rign"), HasSubstr("did you mean 'ring'?"));
  EXPECT_THAT(read("..1MiB"), HasSubstr("says nothing to do"));
  EXPECT_THAT(read("all_reduce"), HasSubstr("says nothing to do"));
  EXPECT_THAT(read("2MiB..1MiB ring"), HasSubstr("begins above its end"));
  EXPECT_THAT(read("1XiB.. ring"), HasSubstr("'1XiB..' are no sizes; as in ..1MiB"));
  EXPECT_THAT(read("-1.. ring"), HasSubstr("are no sizes"));
  EXPECT_THAT(read("99999999999999999999.. ring"), HasSubstr("are no sizes"));
  EXPECT_THAT(read("ring 4"), HasSubstr("'4' alone"));
  EXPECT_THAT(read("ring 65 channels"), HasSubstr("channels can be 1 to 64"));
  EXPECT_THAT(read("ring 0 channels"), HasSubstr("channels can be 1 to 64"));
  EXPECT_THAT(read("nvls 4 channels"), HasSubstr("ring or tree"));
  EXPECT_THAT(read("ring tree"), HasSubstr("names an algorithm twice"));
  EXPECT_THAT(read("ll no_ll128"), HasSubstr("names a protocol twice"));
  EXPECT_THAT(read("..5 7.. ring"), HasSubstr("names sizes twice"));
  EXPECT_THAT(read("broadcast all_reduce ring"), HasSubstr("names a collective twice"));
}

TEST(TuningRules, AreCheckedWhereverTheyAreSet) {
  const Schema schema = runtime_schema();
  const auto checked = schema.check("nccl.rules", "..1MiB rign");
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, HasSubstr("nccl.rules, rule 1 (..1MiB rign): 'rign' is no size"));
  EXPECT_TRUE(schema.check("nccl.rules", "..1MiB ring"));
  const auto travelled = Schema::from_json(schema.to_json()).value();
  EXPECT_FALSE(travelled.check_text("nccl.rules", "rign")) << "the console checks, too";
}

}  // namespace
}  // namespace footplate
