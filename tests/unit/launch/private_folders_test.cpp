#include "run_files/private_folders.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <functional>
#include <thread>

namespace footplate {
namespace {

namespace fs = std::filesystem;

TEST(PrivateFoldersTest, NothingThatIsBeingMadeIsSweptAway) {
  std::atomic<bool> done = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 2; ++i)
    others.emplace_back([&done] {
      while (!done) sweep_abandoned_folders();
    });

  for (int i = 0; i < 300; ++i) {
    const auto folders = PrivateFolders::of("test-" + std::to_string(::getpid()) + "-" + std::to_string(i));
    const auto lock = folders.create();
    EXPECT_TRUE(lock.has_value()) << lock.error().message;
    if (!lock) break;
    EXPECT_TRUE(fs::is_directory(folders.temporary));
    EXPECT_TRUE(fs::is_directory(folders.shared_memory));
    folders.remove();
    ::close(*lock);
  }

  done = true;
  for (auto& other : others) other.join();
}

TEST(PrivateFoldersTest, WhatNobodyHoldsIsSweptAway) {
  const auto folders = PrivateFolders::of("test-" + std::to_string(::getpid()) + "-left");
  const auto lock = folders.create();
  ASSERT_TRUE(lock.has_value());
  sweep_abandoned_folders();
  EXPECT_TRUE(fs::is_directory(folders.temporary));
  ::close(*lock);
  sweep_abandoned_folders();
  EXPECT_FALSE(fs::exists(folders.temporary));
  EXPECT_FALSE(fs::exists(folders.shared_memory));
}

/// Waits for what another process does.
bool comes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

TEST(PrivateFoldersTest, RanksOfAnotherHostShareThem) {
  const auto folders = PrivateFolders::of("test-" + std::to_string(::getpid()) + "-shared");
  EXPECT_EQ(PrivateFolders::id_of(folders.temporary), "test-" + std::to_string(::getpid()) + "-shared");
  const auto first = folders.share();
  const auto second = folders.share();
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(folders.are_launchers());
  ASSERT_TRUE(remove_when_abandoned(folders));
  ::close(*first);
  sweep_abandoned_folders();
  EXPECT_TRUE(fs::is_directory(folders.temporary));
  ::close(*second);
  EXPECT_TRUE(
      comes_true([&] { return !fs::exists(folders.temporary) && !fs::exists(folders.shared_memory); }));
}

/// MPI's daemon removes the segments of a rank that has ended, and another process of the run its folders.
TEST(PrivateFoldersTest, NothingIsLeftWhereFilesGoAtTheSameTime) {
  constexpr int kFiles = 50;
  const auto folders = PrivateFolders::of("test-" + std::to_string(::getpid()) + "-two");
  for (int round = 0; round < 50; ++round) {
    const auto lock = folders.create();
    ASSERT_TRUE(lock.has_value());
    const auto segment = [&folders](int i) { return folders.shared_memory / std::to_string(i); };
    for (int i = 0; i < kFiles; ++i) std::ofstream(segment(i)) << i;
    std::thread daemon([&segment] {
      for (int i = 0; i < kFiles; ++i) ::unlink(segment(i).c_str());
    });
    folders.remove();
    daemon.join();
    EXPECT_FALSE(fs::exists(folders.shared_memory)) << "round " << round;
    ::close(*lock);
  }
}

TEST(PrivateFoldersTest, ThoseOfTheLauncherAreKnown) {
  const auto folders = PrivateFolders::of("test-" + std::to_string(::getpid()) + "-launcher");
  const auto lock = folders.create();
  ASSERT_TRUE(lock.has_value());
  EXPECT_TRUE(folders.are_launchers());
  folders.clear();  // between two starts
  EXPECT_TRUE(folders.are_launchers());
  folders.remove();
  ::close(*lock);
}

}  // namespace
}  // namespace footplate
