#include "runtime/watch/collective_watch.h"

#include <gtest/gtest.h>

namespace footplate {
namespace {

using std::chrono::seconds;

/// Rank 0's watch of three ranks, of whose heartbeats only the digests count here.
class CollectiveWatchTest : public ::testing::Test {
 protected:
  static message::Launched launch(Ledger& ledger, const char* name = "gradients") {
    const std::uint64_t sequence = ledger.enqueue(entry(Collective::all_reduce, {}, name));
    return {sequence, ledger.find(sequence)->digest};
  }
  void beat(int rank, const message::Launched& launched) {
    message::Beat beat;
    beat.launched = launched;
    watch_.handle(rank, beat, now_);
  }

  SteadyClock::time_point now_{seconds(1000)};
  StatusTracker status_{3, {}, now_};
  Ledger own_, others_;
  int asked_ = 0;
  CollectiveWatch watch_{CollectiveWatch::Parts{
      status_, &own_, 3, [this](SteadyClock::time_point) { ++asked_; }, [](const Warning&) {}}};
};

TEST_F(CollectiveWatchTest, ADigestWaitsUntilRankZeroHasComeSoFar) {
  const message::Launched first = launch(others_);
  const message::Launched second = launch(others_, "other");
  beat(1, first);
  beat(1, second) /* dropped: the first one waits */;
  beat(2, second);
  launch(own_);
  beat(0, {1, own_.find(1)->digest});
  EXPECT_EQ(asked_, 0) << "the first is the same";
  launch(own_);  // not what rank 2 has called
  EXPECT_EQ(asked_, 0);
  beat(1, first);
  EXPECT_EQ(asked_, 1) << "any heartbeat has all compared";
}

TEST_F(CollectiveWatchTest, ADigestThatDiffersIsAskedAboutAtOnceWhereRankZeroIsAhead) {
  const message::Launched other = launch(others_, "other");
  launch(own_);
  launch(own_);
  beat(0, {2, own_.find(2)->digest});
  EXPECT_EQ(asked_, 0);
  beat(2, other);
  EXPECT_EQ(asked_, 1);
  beat(2, other);
  EXPECT_EQ(asked_, 1) << "it is being asked";
}

}  // namespace
}  // namespace footplate
