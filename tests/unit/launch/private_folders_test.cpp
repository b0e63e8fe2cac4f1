#include "console/launch/start/private_folders.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
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

}  // namespace
}  // namespace footplate
