// Stacks of the threads of this process, the names in them, and rank 0's questions for them.
#include "runtime/stacks/thread_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "runtime/stacks/symbols.h"
#include "runtime/watch/rank_inquiries.h"

namespace footplate {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_THREAD__)
constexpr bool kThreadSanitizer = true;
#else
constexpr bool kThreadSanitizer = false;
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// Both ways between a test and its thread.
struct Whistle {
  std::mutex mutex;
  std::condition_variable changed;
  bool waits = false, blown = false;

  /// Until the thread is in its wait: it has let go of the mutex.
  void await_listener() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return waits; });
  }
  void blow() {
    const std::lock_guard lock(mutex);
    blown = true;
    changed.notify_all();
  }
};

[[gnu::noinline]] void listens_for_the_whistle(Whistle& whistle) {
  std::unique_lock lock(whistle.mutex);
  whistle.waits = true;
  whistle.changed.notify_all();
  whistle.changed.wait(lock, [&] { return whistle.blown; });
}

/// A thread of a name that ends with the test.
class Worker {
 public:
  template <class Work>
  Worker(const char* name, Work work)
      : thread_([name, work] {
          pthread_setname_np(pthread_self(), name);
          work();
        }) {}
  ~Worker() { thread_.join(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

 private:
  std::thread thread_;
};

ThreadPlace of(const std::string& name, const std::vector<ThreadPlace>& stacks) {
  for (const ThreadPlace& stack : stacks)
    if (stack.name == name) return stack;
  return {};
}

/// Whether the thread comes to that state of /proc, at any time soon.
bool sleeps(const std::atomic<pid_t>& tid, char state) {
  const auto deadline = Clock::now() + seconds(10);
  while (Clock::now() < deadline) {
    std::string line;
    std::getline(std::ifstream("/proc/self/task/" + std::to_string(tid) + "/stat"), line);
    const auto name_end = line.rfind(") ");
    if (name_end != std::string::npos && line[name_end + 2] == state) return true;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return false;
}

TEST(Stacks, NameTheFunctionThatAThreadWaitsIn) {
  Whistle whistle;
  std::atomic<pid_t> tid{0};
  const Worker worker("listener", [&] {
    tid = ::gettid();
    listens_for_the_whistle(whistle);
  });
  whistle.await_listener();
  ASSERT_TRUE(sleeps(tid, 'S'));
  const auto stacks = take_stacks();
  const ThreadPlace listener = of("listener", stacks);
  EXPECT_THAT(listener.frames, Contains(StartsWith("footplate::listens_for_the_whistle(")));
  EXPECT_THAT(listener.frames, Contains(HasSubstr("(libc.so.6)"))) << "innermost, waiting";
  EXPECT_EQ(listener.note, "");
  EXPECT_EQ(listener.state, "sleeping");
  EXPECT_EQ(listener.tid, tid);
  ASSERT_FALSE(stacks.empty());
  EXPECT_EQ(stacks[0].tid, ::getpid()) << "the main thread is the first";
  EXPECT_EQ(stacks[0].name, "training");
  EXPECT_THAT(stacks[0].frames, Contains(HasSubstr("footplate::take_stacks(")));
  EXPECT_THAT(stacks[0].frames, Contains(HasSubstr("main")));
  whistle.blow();
}

/// The innermost frame is where it was, not the handler.
TEST(Stacks, BeginWhereTheThreadWas) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's own frames come first";
  std::array<int, 2> ends{};
  std::atomic<pid_t> tid{0};
  ASSERT_EQ(::pipe(ends.data()), 0);
  {
    const Worker worker("reader", [&] {
      tid = ::gettid();
      char byte = 0;
      EXPECT_EQ(::read(ends[0], &byte, 1), 1) << "restarted, not ended by the signals";
    });
    ASSERT_TRUE(sleeps(tid, 'S'));
    const auto frames = of("reader", take_stacks()).frames;
    ASSERT_THAT(frames, Not(IsEmpty()));
    EXPECT_THAT(frames[0], HasSubstr("read"));
    ASSERT_EQ(::write(ends[1], "x", 1), 1);
  }
  for (const int end : ends) ::close(end);
}

std::atomic<bool> g_spinning{false};

[[gnu::noinline]] void spins_in_a_circle() {
  while (g_spinning) {
  }
}

TEST(Stacks, OfOneThatComputes) {
  if (kThreadSanitizer) GTEST_SKIP() << "it hands signals on at the next system call only";
  g_spinning = true;
  const Worker worker("spinner", [] { spins_in_a_circle(); });
  ThreadPlace spinner;
  for (int tries = 0; spinner.frames.empty() && tries < 5000; ++tries) spinner = of("spinner", take_stacks());
  EXPECT_THAT(spinner.frames, Contains(StartsWith("footplate::spins_in_a_circle(")));
  EXPECT_EQ(spinner.state, "running");
  g_spinning = false;
}

TEST(Stacks, ThatBlocksTheSignalIsListedWithoutAWait) {
  Whistle whistle;
  const Worker worker("deaf", [&] {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, stack_signal());
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    listens_for_the_whistle(whistle);
  });
  whistle.await_listener();
  const auto before = Clock::now();
  const auto stacks = take_stacks(seconds(60));
  EXPECT_LT(Clock::now() - before, seconds(30));
  EXPECT_THAT(of("deaf", stacks).note, StartsWith("doesn't answer: it blocks the signal"));
  EXPECT_THAT(of("deaf", stacks).frames, IsEmpty());
  EXPECT_THAT(of("training", stacks).frames, Not(IsEmpty()));
  whistle.blow();
}

int waits_for_a_byte(void* from) {
  char byte = 0;
  while (::read(*static_cast<int*>(from), &byte, 1) != 1) {
  }
  return 0;
}

/// While a child borrows its memory, as with vfork(), no signal reaches a thread: as if it waited for a disk.
TEST(Stacks, ThatTheSignalDoesNotReachIsListedAfterABoundedWait) {
  if (kSanitized) GTEST_SKIP() << "sanitizers don't follow clone()";
  std::array<int, 2> ends{};
  std::atomic<pid_t> tid{0};
  ASSERT_EQ(::pipe(ends.data()), 0);
  {
    const Worker worker("stuck", [&] {
      tid = ::gettid();
      alignas(16) std::array<char, 16384> stack;
      const pid_t child = ::clone(waits_for_a_byte, stack.data() + stack.size(),
                                  CLONE_VM | CLONE_VFORK | SIGCHLD, ends.data());
      EXPECT_EQ(::waitpid(child, nullptr, 0), child);
      EXPECT_EQ(::read(ends[0], stack.data(), 1), 1);
    });
    ASSERT_TRUE(sleeps(tid, 'D'));
    const auto before = Clock::now();
    const auto stacks = take_stacks(milliseconds(50));
    EXPECT_LT(Clock::now() - before, seconds(10));
    EXPECT_THAT(of("stuck", stacks).note, AllOf(StartsWith("doesn't answer"), Not(HasSubstr("earlier"))));
    EXPECT_EQ(of("stuck", stacks).state, "disk sleep");
    EXPECT_THAT(of("stuck", stacks).frames, IsEmpty());
    EXPECT_THAT(of("training", stacks).frames, Not(IsEmpty()));
    EXPECT_THAT(of("stuck", take_stacks(seconds(60))).note, HasSubstr("an earlier signal hasn't reached it"));
    EXPECT_LT(Clock::now() - before, seconds(30)) << "no second signal, no wait for it";
    ASSERT_EQ(::write(ends[1], "x", 1), 1);
    ThreadPlace stuck;
    for (int tries = 0; stuck.frames.empty() && tries < 5000; ++tries) {
      std::this_thread::sleep_for(milliseconds(1));
      stuck = of("stuck", take_stacks());
    }
    EXPECT_EQ(stuck.note, "") << "it answers again, and the late signals did no harm";
    ASSERT_EQ(::write(ends[1], "y", 1), 1);
  }
  for (const int end : ends) ::close(end);
}

/// What threads do goes on: a wait with a deadline, a sum, threads that begin and end.
TEST(Stacks, ManyTimesInARowDisturbNothing) {
  std::atomic<bool> quit{false};
  std::atomic<int> born{0};
  const auto patience = milliseconds(kThreadSanitizer ? 5 : 200);
  {
    const Worker summing("summing", [&] {
      while (!quit) {
        double sum = 0;
        for (int i = 1; i <= 100000; ++i) sum += i;
        if (sum != 5000050000.0) ADD_FAILURE() << sum;
        std::this_thread::yield();
      }
    });
    const Worker waiting("waiting", [&] {
      std::mutex mutex;
      std::condition_variable never;
      while (!quit) {
        std::unique_lock lock(mutex);
        const auto until = Clock::now() + milliseconds(2);
        EXPECT_FALSE(never.wait_until(lock, until, [] { return false; }));
        EXPECT_GE(Clock::now(), until);
      }
    });
    const Worker bearing("bearing", [&] {
      while (!quit) std::thread([&] { ++born; }).join();
    });
    for (int i = 0; i < 200; ++i) EXPECT_THAT(of("training", take_stacks(patience)).frames, Not(IsEmpty()));
    quit = true;
  }
  EXPECT_GT(born, 0);
}

#if defined(__x86_64__)
std::atomic<bool> g_lost{false};

/// Its unwind table says that the caller's frame is where a register points, and that points nowhere.
[[gnu::noinline]] void has_wrong_tables() {
  const auto* flag = reinterpret_cast<const char*>(&g_lost);
  asm volatile(
      ".cfi_remember_state\n"
      ".cfi_def_cfa %%rax, 8\n"
      "1: pause\n"
      "cmpb $0, (%[flag])\n"
      "jne 1b\n"
      ".cfi_restore_state\n"
      :
      : [flag] "r"(flag), "a"(64L)
      : "cc", "memory");
}

TEST(Stacks, EndWhereTheUnwindTablesAreWrong) {
  if (kSanitized) GTEST_SKIP() << "faults are theirs";
  g_lost = true;
  const Worker worker("lost", [] { has_wrong_tables(); });
  ThreadPlace lost;
  for (int tries = 0; lost.frames.empty() && tries < 5000; ++tries) lost = of("lost", take_stacks());
  EXPECT_THAT(lost.frames, ElementsAre(StartsWith("footplate::has_wrong_tables(")));
  for (int i = 0; i < 2000; ++i)
    take_stacks(milliseconds(0));  // the handler may be at it when nobody waits any longer
  g_lost = false;
}
#endif

/// The handler of faults, which is there while stacks are taken, is for those of the walk alone.
TEST(StacksDeathTest, AFaultOfSomebodyElseEndsTheProcessAsEver) {
  if (kSanitized) GTEST_SKIP() << "faults are theirs";
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto fault_meanwhile = [] {
    std::thread([] {
      for (;;) take_stacks();
    }).detach();
    std::this_thread::sleep_for(milliseconds(20));
    ::raise(SIGSEGV);
    std::this_thread::sleep_for(seconds(5));
  };
  EXPECT_EXIT(fault_meanwhile(), testing::KilledBySignal(SIGSEGV), "");
}

[[gnu::noinline]] std::vector<ThreadPlace> deep(int depth) {  // NOLINT(misc-no-recursion)
  if (depth == 0) return take_stacks();
  auto stacks = deep(depth - 1);
  if (stacks.empty()) ADD_FAILURE();
  return stacks;
}

TEST(Stacks, OfManyFramesLackSomeInTheMiddle) {
  const auto frames = of("training", deep(80)).frames;
  ASSERT_THAT(frames, SizeIs(40));
  EXPECT_EQ(frames[26], "…");
  EXPECT_THAT(frames[25], HasSubstr("deep"));
  EXPECT_THAT(std::vector(frames.begin() + 27, frames.end()), Contains(HasSubstr("main"))) << "the outermost";
}

std::vector<ThreadPlace> many_threads(int count, int frames) {
  std::vector<ThreadPlace> threads;
  for (int i = 0; i < count; ++i) {
    threads.push_back({"pool", i + 1, "sleeping", {}, ""});
    for (int frame = 0; frame < frames; ++frame)
      threads.back().frames.push_back("frame " + std::to_string(frame));
  }
  return threads;
}

Json as_json(const std::vector<ThreadPlace>& threads) {
  Json list = Json::array();
  for (const ThreadPlace& thread : threads) list.push_back(to_json(thread));
  return list;
}

TEST(Stacks, AreTrimmedToASize) {
  std::vector<ThreadPlace> threads = many_threads(10, 40);
  trim_stacks(threads, 100000);
  EXPECT_EQ(as_json(threads), as_json(many_threads(10, 40)));
  trim_stacks(threads, 2000);
  EXPECT_LE(as_json(threads).dump().size(), 2000U);
  ASSERT_EQ(threads.size(), 10U);
  const std::vector<std::string>& frames = threads[9].frames;
  EXPECT_EQ(frames.front(), "frame 0");
  EXPECT_THAT(frames, Contains("…"));
  EXPECT_EQ(frames.back(), "frame 39");
  trim_stacks(threads, 500);
  EXPECT_LE(as_json(threads).dump().size(), 700U);
  EXPECT_EQ(threads[0].tid, 1);
  EXPECT_EQ(threads.back().note, "further threads are left out");
}

TEST(Symbols, AreReadable) {
  EXPECT_EQ(readable_symbol("main"), "main");
  EXPECT_EQ(readable_symbol("_ZN9footplate7Trainer3runERNS_8StepGateE"),
            "footplate::Trainer::run(footplate::StepGate&)");
  EXPECT_EQ(readable_symbol("_ZN9footplate12_GLOBAL__N_14Rank5trainEv"), "footplate::Rank::train()");
  EXPECT_EQ(readable_symbol("_Znot mangled"), "_Znot mangled");
  EXPECT_EQ(readable_symbol(
                "_ZN9footplate12_GLOBAL__N_110SharedWork4waitENSt6chrono10time_pointINS2_3_V212steady_clockE"
                "NS2_8durationIlSt5ratioILl1ELl1000000000EEEEEE"),
            "footplate::SharedWork::wait(std::chrono::time_point<…>)");
  EXPECT_EQ(readable_symbol("operator<<" + std::string(100, 'x') + "<int>(a, b)"),
            "operator<<" + std::string(100, 'x') + "<…>(…)");
  EXPECT_EQ(readable_symbol("f<(3 > 2), a->b>()" + std::string(80, 'y')), "f<…>()" + std::string(80, 'y'));
  const std::string endless = readable_symbol(std::string(1000, 'z'));
  EXPECT_EQ(endless.size(), 160U);
  EXPECT_THAT(endless, ::testing::EndsWith("z…"));
}

/// Rank 0's questions, without threads.
class RankInquiriesTest : public ::testing::Test {
 protected:
  RankInquiriesTest() {
    beat_.step = 5;
    beat_.phase = Phase::evaluation;
    for (int rank = 0; rank < kRanks; ++rank) status_.beat(rank, beat_, now_);
  }
  void answer(int rank, const char* name = "training") { answer(rank, {{name, 1, "sleeping", {}, ""}}); }
  void answer(int rank, const std::vector<ThreadPlace>& threads) {
    inquiries_.handle(rank, {"stacks", as_json(threads)}, now_);
  }
  void ask(std::optional<int> rank = {}) { inquiries_.ask(*find_rank_query("stacks"), rank, now_); }
  std::vector<int> asked() {
    std::vector<int> ranks;
    for (const auto& [to, message] : sent_) {
      EXPECT_EQ(message, (Json{{"t", "inquire"}, {"what", "stacks"}}));
      ranks.push_back(to);
    }
    sent_.clear();
    return ranks;
  }

  static constexpr int kRanks = 3;
  Clock::time_point now_{seconds(1000)};
  ControlTimes times_;
  StatusTracker status_{kRanks, times_, now_};
  std::vector<std::pair<int, Json>> sent_;
  std::vector<Json> reports_;
  message::Beat beat_;
  Schema schema_;
  Advice advice_{{schema_, status_, nullptr, kRanks, 1, {}, {}}};
  RankInquiries inquiries_{
      {kRanks, [this](int to, const message::ToRanks& message) { sent_.emplace_back(to, to_json(message)); },
       [this](const message::ToRanks& message) {
         for (int to = 0; to < kRanks; ++to) sent_.emplace_back(to, to_json(message));
       },
       [this](const RankQuery& query, const RankAnswers& heard, Clock::time_point now) {
         EXPECT_EQ(query.name, "stacks");
         reports_.push_back(query.merge(heard, status_, advice_, now));
       },
       times_}};
};

TEST_F(RankInquiriesTest, ReportOnceAllHaveAnswered) {
  ask();
  EXPECT_THAT(asked(), ElementsAre(0, 1, 2));
  answer(2);
  answer(0);
  EXPECT_THAT(reports_, IsEmpty());
  EXPECT_TRUE(inquiries_.awaiting_answers());
  answer(1);
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_TRUE(reports_[0]["rank"].is_null());
  ASSERT_EQ(reports_[0]["ranks"].size(), 3U);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(reports_[0]["ranks"][static_cast<std::size_t>(rank)]["rank"], rank);
    EXPECT_EQ(reports_[0]["ranks"][static_cast<std::size_t>(rank)]["threads"][0]["name"], "training");
  }
  EXPECT_FALSE(inquiries_.awaiting_answers());
}

TEST_F(RankInquiriesTest, NameWhoDoesNotAnswerAndForHowLong) {
  ask();
  answer(0);
  answer(2);
  EXPECT_EQ(inquiries_.next_tick(), now_ + times_.inquiry);
  now_ += times_.inquiry;
  inquiries_.tick(now_);
  ASSERT_THAT(reports_, SizeIs(1));
  const Json& silent = reports_[0]["ranks"][1];
  EXPECT_EQ(silent["silent_s"], 1.0);
  EXPECT_THAT(silent["text"].get<std::string>(), StartsWith("step 5, evaluation"));
  EXPECT_EQ(silent["threads"], Json::array());
  EXPECT_FALSE(reports_[0]["ranks"][0].contains("silent_s"));
}

/// It would have to answer all of them as soon as it goes on.
TEST_F(RankInquiriesTest, AskNobodyAgainWhoOwesAnAnswer) {
  for (int i = 0; i < 3; ++i) {
    ask();
    answer(0);
    answer(2);
    now_ += times_.inquiry;
    inquiries_.tick(now_);
  }
  EXPECT_THAT(asked(), ElementsAre(0, 1, 2, 0, 2, 0, 2));
  EXPECT_THAT(reports_, SizeIs(3));
  answer(1);  // at last; nobody waits for it
  EXPECT_THAT(reports_, SizeIs(3));
  ask(1);
  EXPECT_THAT(asked(), ElementsAre(1));
}

TEST_F(RankInquiriesTest, ForOneRankAndForAllShareAnAnswer) {
  ask(1);
  ask(1);
  ask();
  EXPECT_THAT(asked(), ElementsAre(1, 0, 2));
  answer(1);
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_EQ(reports_[0]["rank"], 1);
  EXPECT_EQ(reports_[0]["ranks"].size(), 1U);
  answer(0);
  answer(2);
  ASSERT_THAT(reports_, SizeIs(2));
  EXPECT_EQ(reports_[1]["ranks"].size(), 3U);
}

TEST_F(RankInquiriesTest, AReportIsOneLineHoweverManyThreads) {
  ask();
  for (int rank = 0; rank < kRanks; ++rank) answer(rank, many_threads(1000, 40));
  ASSERT_THAT(reports_, SizeIs(1));
  EXPECT_LT(reports_[0].dump().size(), kMaxFrameBytes);
  EXPECT_EQ(reports_[0]["ranks"][2]["threads"].back()["note"], Json()) << "frames go first";
}

}  // namespace
}  // namespace footplate
