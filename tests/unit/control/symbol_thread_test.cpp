#include "runtime/stacks/symbol_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

namespace footplate {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

[[gnu::noinline]] int has_a_name() {
  return 7;
}

/// Of a library, of none, of this program.
std::vector<std::uintptr_t> some_addresses() {
  return {reinterpret_cast<std::uintptr_t>(&::poll) + 1, 64, reinterpret_cast<std::uintptr_t>(&has_a_name)};
}

/// Files can't be opened before it answers.
class StuckDisk {
 public:
  int open(const std::string& path) {
    std::unique_lock lock(mutex_);
    ++opened_;
    changed_.wait(lock, [this] { return answers_; });
    return open_file(path);
  }
  void answer() {
    const std::lock_guard lock(mutex_);
    answers_ = true;
    changed_.notify_all();
  }
  int opened() {
    const std::lock_guard lock(mutex_);
    return opened_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool answers_ = false;
  int opened_ = 0;
};

OpenFile on(const std::shared_ptr<StuckDisk>& disk) {
  return [disk](const std::string& path) { return disk->open(path); };
}

template <class Condition>
bool comes(Condition condition) {
  const auto deadline = Clock::now() + seconds(30);
  while (!condition() && Clock::now() < deadline) std::this_thread::sleep_for(milliseconds(1));
  return condition();
}

TEST(SymbolThread, NamesWhatIsOfTheProgramAndItsLibraries) {
  SymbolThread symbols;
  const auto names = symbols.name(some_addresses(), seconds(60));
  ASSERT_THAT(names, SizeIs(3));
  if (!kSanitized) {
    EXPECT_EQ(names[0], "poll (libc.so.6)");
  }
  EXPECT_EQ(names[1], "0x40");
  EXPECT_EQ(names[2], "footplate::has_a_name()");
}

TEST(SymbolThread, AnswersWithOffsetsWhereADiskDoesnt) {
  const auto disk = std::make_shared<StuckDisk>();
  SymbolThread symbols(on(disk));
  const auto names = symbols.name(some_addresses(), milliseconds(100));
  ASSERT_THAT(names, SizeIs(3));
  if (!kSanitized) {
    EXPECT_THAT(names[0], StartsWith("libc.so.6+0x"));
  }
  EXPECT_EQ(names[1], "0x40");
  EXPECT_THAT(names[2], StartsWith("symbols_test+0x"));
  EXPECT_TRUE(comes([&] { return disk->opened() == 1; }));
  EXPECT_EQ(symbols.name(some_addresses(), hours(1)), names)
      << "at once: the thread is at the first question";
  EXPECT_EQ(disk->opened(), 1);
  disk->answer();
  EXPECT_TRUE(comes([&] { return symbols.name(some_addresses())[2] == "footplate::has_a_name()"; }));
}

TEST(SymbolThread, IsLeftBehindWhereItIsStuck) {
  const auto disk = std::make_shared<StuckDisk>();
  {
    SymbolThread symbols(on(disk));
    symbols.name(some_addresses(), milliseconds(1));
    ASSERT_TRUE(comes([&] { return disk->opened() == 1; }));
  }
  disk->answer();
  EXPECT_TRUE(comes([&] { return disk.use_count() == 1; })) << "the thread has ended";
}

}  // namespace
}  // namespace footplate
