// journal.lua read back: what console/host/run/journal.cpp writes.
#include "console/lua/config/journal_reader.h"

#include <gmock/gmock.h>

#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using testing::HasSubstr;

constexpr const char* kJournal = R"(-- start "2026-11-21T09:00:00.000Z" of run t
-- order 1 · ann · s3 · 2026-11-21T09:00:01Z · log.every was 100
--   log.every = 10
--   optim.lr_scale = 0.5
at(41, { log = { every = 10 }, optim = { lr_scale = 0.5 } })
-- order 3 · bob · s4 · 2026-11-21T09:00:02Z · optim.betas was {0.9, 0.99}
at(52, function() set{ optim = { betas = {0.8, 0.95} } }; ckpt.save{ tag = "a \"b\"\n" }; eval.now() end)
-- start "2026-11-21T10:00:00.000Z" of run t
-- order 2 ·  · footplate · 2026-11-21T10:00:01Z
--   -- signal
at(60, function() run.stop{ reason = "signal", resumable = true, save = true } end)
)";

Result<std::vector<JournalPart>> read(const std::string& text) {
  return read_journal_text(text, "journal.lua", runtime_schema());
}

TEST(JournalReader, ReadsOrdersWithTheirComments) {
  const auto parts = read(kJournal);
  ASSERT_TRUE(parts) << parts.error().message;
  ASSERT_EQ(parts->size(), 3U);
  EXPECT_TRUE((*parts)[0].orders.empty());
  EXPECT_EQ((*parts)[1].started, "2026-11-21T09:00:00.000Z");
  ASSERT_EQ((*parts)[1].orders.size(), 2U);
  const Order& first = (*parts)[1].orders[0];
  EXPECT_EQ(first.id, 1U);
  EXPECT_EQ(first.user, "ann");
  EXPECT_EQ(first.session, "s3");
  EXPECT_EQ(first.source, "log.every = 10\noptim.lr_scale = 0.5");
  EXPECT_EQ(first.at_step, 41);
  EXPECT_EQ(first.changes.size(), 2U);
  const Order& second = (*parts)[1].orders[1];
  ASSERT_EQ(second.changes.size(), 1U);
  EXPECT_EQ(second.changes[0].value, Value(std::vector<double>{0.8, 0.95}));
  ASSERT_EQ(second.calls.size(), 2U);
  EXPECT_EQ(second.calls[0].arguments["tag"], "a \"b\"\n");
  EXPECT_EQ(second.calls[1].action, "eval.now");
  ASSERT_EQ((*parts)[2].orders.size(), 1U);
  EXPECT_EQ((*parts)[2].orders[0].session, "footplate");
  EXPECT_EQ((*parts)[2].orders[0].calls[0].arguments["resumable"], true);
}

/// More entries with calls than Lua takes functions in a chunk.
TEST(JournalReader, ReadsAsManyOrdersAsThereAre) {
  constexpr int kOrders = 140'000;
  std::string text = "-- start \"2026-11-21T09:00:00.000Z\" of run t\n";
  for (int order = 1; order <= kOrders; ++order)
    text += "-- order " + std::to_string(order) + " · ann · s3 · 2026-11-21T09:00:01Z\nat(" +
            std::to_string(10 + order) + ", function() eval.now() end)\n";
  const auto parts = read(text);
  ASSERT_TRUE(parts) << parts.error().message;
  ASSERT_EQ(parts->size(), 2U);
  const std::vector<Order>& orders = (*parts)[1].orders;
  ASSERT_EQ(orders.size(), static_cast<std::size_t>(kOrders));
  for (const int at : {0, 19'999, 20'000, 131'072, kOrders - 1}) {
    EXPECT_EQ(orders[static_cast<std::size_t>(at)].id, static_cast<std::uint64_t>(at + 1));
    EXPECT_EQ(orders[static_cast<std::size_t>(at)].at_step, 11 + at);
  }
  const auto wrong = read(text + "-- order 140001 · ann · s3 · 2026-11-21T09:00:01Z\nat(200000, no)\n");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("280003"));
}

TEST(JournalReader, LeavesOutWhatACrashCutShort) {
  const std::string whole = kJournal;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const auto parts = read(whole.substr(0, size));
    ASSERT_TRUE(parts) << size << ": " << parts.error().message;
  }
}

TEST(JournalReader, LeavesOutWhatTheTaskHasLost) {
  const auto parts = read(
      "-- start \"T1\" of run t\n-- order 1 · ann · s3 · now\nat(3, { log = { every = 1 }, task = { noise = "
      "0.3 } })\n"
      "-- order 2 · ann · s3 · now\nat(5, function() set{ task = { noise = 0.1 } }; task.reset{ scale = 2 } "
      "end)\n");
  ASSERT_TRUE(parts) << parts.error().message;
  const JournalPart& part = parts->back();
  ASSERT_EQ(part.orders.size(), 2U);
  ASSERT_EQ(part.orders[0].changes.size(), 1U);
  EXPECT_EQ(part.orders[0].changes[0].name, "log.every");
  EXPECT_TRUE(part.orders[1].changes.empty() && part.orders[1].calls.empty());
  ASSERT_EQ(part.gone.size(), 3U);
  EXPECT_EQ(part.gone[0].order, 1U);
  EXPECT_EQ(part.gone[0].step, 3);
  EXPECT_EQ(part.gone[0].value, Json(0.3));
  EXPECT_EQ(part.gone[1].name, "task.noise");
  EXPECT_EQ(part.gone[2].name, "task.reset");
  EXPECT_FALSE(part.gone[2].value);
}

TEST(JournalReader, SaysWhereItUnderstandsNothing) {
  const std::string heading = "-- order 1 · ann · s3 · now\n";
  EXPECT_THAT(read(heading + "at(3, { log = { evry = 1 } })\n").error().message, HasSubstr("log.every"));
  EXPECT_THAT(read(heading + "at(3, { log = { every = -1 } })\n").error().message, HasSubstr("log.every"));
  EXPECT_THAT(read(heading + "at(3, function() run.stopp() end)\n").error().message, HasSubstr("run.stop"));
  EXPECT_THAT(read("at(3, { log = { every = 1 } })\n").error().message, HasSubstr("journal.lua:1"));
  EXPECT_THAT(read(heading + "io.open('x')\n").error().message, HasSubstr("'io'"));
  EXPECT_THAT(read("set{ log = { every = 1 } }\n").error().message, HasSubstr("outside of at"));
  EXPECT_THAT(read("while true do end\n").error().message, HasSubstr("still running"));
}

}  // namespace
}  // namespace footplate
