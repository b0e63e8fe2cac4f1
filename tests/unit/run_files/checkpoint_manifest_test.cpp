#include "run_files/checkpoint_manifest.h"

#include "tests/unit/run_files/folder_fixture.h"

namespace footplate {
namespace {

class CheckpointManifestTest : public test::FolderTest {};

TEST_F(CheckpointManifestTest, WhatCannotBeReadHidesNothingElse) {
  EXPECT_FALSE(read_checkpoint_manifest(folder_));
  write("manifest.json", R"({"step": 12, "tag": 5, "created": "T", "orders": [5, {"id": 3, "at_step": 40}],
      "settings": {"log.every": {"value": 7, "source": "order 2"}, "x": 5}, "metrics": {"eval/loss": 2.5},
      "files": [{"name": "a", "bytes": 8, "sha256": "00"}]})");
  const auto manifest = read_checkpoint_manifest(folder_);
  ASSERT_TRUE(manifest);
  EXPECT_EQ(manifest->step, 12);
  EXPECT_EQ(manifest->tag, "");
  EXPECT_EQ(manifest->created, "T");
  ASSERT_EQ(manifest->orders.size(), 1U);
  EXPECT_EQ(manifest->orders[0].at_step, 40);
  EXPECT_EQ(manifest->metrics.number("eval/loss"), 2.5);
  ASSERT_EQ(manifest->files.size(), 1U);
  EXPECT_EQ(manifest->files[0].bytes, 8U);
  const auto settings = settings_by_name(manifest->settings);
  ASSERT_EQ(settings.size(), 1U);
  EXPECT_EQ(settings.at("log.every").source, "order 2");
  EXPECT_TRUE(settings_by_name(Json()).empty());
}

}  // namespace
}  // namespace footplate
