// Settings for the next start that were changed live: the next start has them.
#include "console/launch/run_dir/kept_settings.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

#include "console/launch/run_dir/run_directory.h"
#include "run_files/json_file.h"
#include "run_files/next_start.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

class KeptSettingsTest : public testing::Test {
 protected:
  KeptSettingsTest() {
    std::string name = (fs::temp_directory_path() / "fp-kept-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    configured_.set("nccl.ib_timeout", std::int64_t{18}, "configs/x.lua:3");
  }
  ~KeptSettingsTest() override { fs::remove_all(folder_); }

  void start(int number, std::uint64_t journal, const Json& given = Json::object()) {
    const std::string time = "T" + std::to_string(number);
    append("starts.jsonl",
           Json({{"start", number}, {"time", time}, {"step", 0}, {"journal", journal}, {"given", given}})
               .dump());
    append("journal.lua", "-- start \"" + time + "\" of run t");
  }
  void order(std::uint64_t id, const std::string& body) {
    append("journal.lua", "-- order " + std::to_string(id) + " · ann · s1 · now\nat(" +
                              std::to_string(10 * id) + ", " + body + ")");
  }
  void append(const std::string& name, const std::string& line) {
    std::ofstream(folder_ / name, std::ios::app) << line << "\n";
  }
  Settings kept(int start, const std::string& resume = "auto") {
    const auto settings = with_kept_settings(configured_, schema_, folder_, start, resume);
    EXPECT_TRUE(settings) << settings.error().message;
    return *settings;
  }

  fs::path folder_;
  const Schema schema_ = runtime_schema();
  Settings configured_ = Settings::defaults(schema_);
};

TEST_F(KeptSettingsTest, TheLastChangeOfTheJournal) {
  start(1, 0);
  order(1, "{ nccl = { ib_timeout = 20 }, log = { every = 5 } }");
  order(2, "{ nccl = { ib_timeout = 22 } }");
  EXPECT_EQ(kept(2).integer("nccl.ib_timeout"), 22);
  EXPECT_EQ(kept(2).source("nccl.ib_timeout"), "order 2");
  EXPECT_EQ(kept(2).integer("log.every"), 10) << "that one the ranks apply at its step";
  EXPECT_EQ(kept(1).integer("nccl.ib_timeout"), 18) << "a first start has no journal";
}

TEST_F(KeptSettingsTest, ALoadHasThemOfItsCheckpointAndWhatItSets) {
  start(1, 0);
  order(1, "{ nccl = { ib_timeout = 20 } }");
  order(2, "{ nccl = { ib_timeout = 22 } }");
  Settings saved = configured_;
  saved.set("nccl.ib_timeout", std::int64_t{20}, "order 1");
  ASSERT_TRUE(write_json_file(folder_ / "manifest.json", {{"start", 1}, {"settings", saved.to_json()}}));
  LoadTarget load;
  load.path = folder_.string();
  load.order = "order 3 (ann)";
  load.settings = Json::object();
  EXPECT_EQ(with_loaded_settings(configured_, schema_, load).integer("nccl.ib_timeout"), 20);
  Settings told = configured_;
  told.set("nccl.ib_timeout", std::int64_t{19}, command_line_of(2));
  EXPECT_EQ(with_loaded_settings(told, schema_, load).integer("nccl.ib_timeout"), 19);
  load.settings = {{"nccl.ib_timeout", {{"value", 21}}},
                   {"log.every", {{"value", 7}, {"source", "order 2"}}}};
  const Settings then = with_loaded_settings(told, schema_, load);
  EXPECT_EQ(then.integer("nccl.ib_timeout"), 21);
  EXPECT_EQ(then.source("nccl.ib_timeout"), "order 3 (ann)");
  EXPECT_EQ(then.source("log.every"), "order 2");

  // A later start of that branch.
  append("starts.jsonl",
         Json({{"start", 2}, {"time", "T2"}, {"step", 15}, {"journal", 1}, {"loaded", true}}).dump());
  ASSERT_TRUE(write_json_file(config_path(folder_, 2), then.to_json()));
  EXPECT_EQ(kept(3).integer("nccl.ib_timeout"), 21);
}

TEST_F(KeptSettingsTest, AlsoOneThatACrashUndid) {
  start(1, 0);
  order(1, "{ nccl = { ib_timeout = 20 } }");
  order(2, "{ nccl = { ib_timeout = 22 } }");
  start(2, 1);  // its checkpoint holds order 1
  EXPECT_EQ(kept(3).integer("nccl.ib_timeout"), 22);
}

TEST_F(KeptSettingsTest, NotWhereThisStartOrTheEnvironmentSaysOtherwise) {
  start(1, 0);
  order(1, "{ nccl = { ib_timeout = 20, ib_retries = 3 } }");
  configured_.set("nccl.ib_timeout", std::int64_t{18}, "command line");
  configured_.set("nccl.ib_retries", std::int64_t{6}, "environment");
  EXPECT_EQ(kept(2).integer("nccl.ib_timeout"), 18);
  EXPECT_EQ(kept(2).integer("nccl.ib_retries"), 6);
}

TEST_F(KeptSettingsTest, WhatALaterStartWasGivenEndsWhatWasChangedBefore) {
  start(1, 0);
  order(1, "{ nccl = { ib_timeout = 20 } }");
  start(2, 1, {{"nccl.ib_timeout", 19}});
  configured_.set("nccl.ib_timeout", std::int64_t{19}, "command line of start 2");
  EXPECT_EQ(kept(3).integer("nccl.ib_timeout"), 19);
  EXPECT_EQ(kept(3).source("nccl.ib_timeout"), "command line of start 2");
}

TEST_F(KeptSettingsTest, NotWhatIsOlderThanALaterCommandLine) {
  start(1, 0);
  order(1, "{ nccl = { ib_timeout = 20 } }");
  configured_.set("nccl.ib_timeout", std::int64_t{19}, "command line of start 2");
  EXPECT_EQ(kept(3).integer("nccl.ib_timeout"), 19) << "start 2 came to nothing";
  start(3, 0);
  order(2, "{ nccl = { ib_timeout = 21 } }");
  EXPECT_EQ(kept(4).integer("nccl.ib_timeout"), 21);
}

TEST_F(KeptSettingsTest, WhatACommandLineRepeatsIsOfTheStartThatHadItFirst) {
  // The source of nccl.ib_timeout at the next start, where its command line says `value`; 0: it doesn't say.
  int number = 0;
  const auto source = [&](std::int64_t value) {
    Settings settings = configured_;
    if (value != 0) settings.set("nccl.ib_timeout", value, "command line");
    settings.set("sched.base_lr", 0.1, "command line");
    EXPECT_TRUE(mark_repeated(settings, folder_, ++number));
    EXPECT_EQ(settings.source("sched.base_lr"), number == 1 ? "command line" : "command line of start 1");
    EXPECT_EQ(settings.number("sched.base_lr"), 0.1);
    return settings.source("nccl.ib_timeout");
  };
  EXPECT_EQ(source(18), "command line");
  EXPECT_EQ(source(18), "command line of start 1");
  EXPECT_EQ(source(18), "command line of start 1");
  EXPECT_EQ(source(19), "command line");
  EXPECT_EQ(source(18), "command line") << "what start 3 had doesn't count";
  EXPECT_EQ(source(0), "configs/x.lua:3");
  EXPECT_EQ(source(18), "command line") << "start 6 had none";
  EXPECT_EQ(source(18), "command line of start 7");
}

TEST_F(KeptSettingsTest, ADamagedCommandLineIsNone) {
  for (const char* text :
       {"", "[]", "7", R"({"nccl.ib_timeout": 18})", R"({"nccl.ib_timeout": {"value": 18, "start": "x"}})"}) {
    fs::remove(folder_ / "command-line.json");
    append("command-line.json", text);
    configured_.set("nccl.ib_timeout", std::int64_t{18}, "command line");
    EXPECT_TRUE(mark_repeated(configured_, folder_, 2));
    EXPECT_EQ(configured_.source("nccl.ib_timeout"), "command line") << text;
  }
}

TEST_F(KeptSettingsTest, OfTheCheckpointThatARunBeginsFrom) {
  Settings saved = Settings::defaults(schema_);
  saved.set("nccl.ib_timeout", std::int64_t{21}, "order 7 (ann)");
  saved.set("nccl.ib_retries", std::int64_t{3}, "configs/old.lua:1");
  ASSERT_TRUE(write_json_file(folder_ / "manifest.json", {{"settings", saved.to_json()}}));
  const Settings settings = kept(1, folder_);
  EXPECT_EQ(settings.integer("nccl.ib_timeout"), 21);
  EXPECT_EQ(settings.source("nccl.ib_timeout"), "order 7 (ann)");
  EXPECT_EQ(settings.integer("nccl.ib_retries"), 0) << "an old config's";

  // Start 1 came to nothing, so that start 2 began from it.
  ASSERT_TRUE(write_json_file(config_path(folder_, 2), kept(2, folder_).to_json()));
  start(2, 0);
  EXPECT_EQ(kept(3).integer("nccl.ib_timeout"), 21) << "what start 2 kept of it";
  EXPECT_EQ(kept(3, folder_).integer("nccl.ib_timeout"), 21) << "start 2 left no checkpoint of its own";
  order(1, "{ nccl = { ib_timeout = 20 } }");
  EXPECT_EQ(kept(3).integer("nccl.ib_timeout"), 20);
  EXPECT_EQ(kept(3, folder_).integer("nccl.ib_timeout"), 20);
}

}  // namespace
}  // namespace footplate
