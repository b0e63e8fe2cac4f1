// Messages through a tree of the ranks: its layout, its words, what is put together on the way, and the
// channel over a simulated network in which ranks stop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/comm/tree/joint_messages.h"
#include "runtime/comm/tree/tree_layout.h"
#include "runtime/comm/tree/tree_words.h"
#include "tests/unit/comm/tree_net.h"

namespace footplate {
namespace {

using footplate::testing::TreeNet;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using tree::Bytes;

// --- sets of ranks ---

TEST(RankSetTest, IsTheSetOfWhatWasAddedAndNotRemoved) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> number(0, 30);
  for (int round = 0; round < 300; ++round) {
    RankSet set;
    std::set<int> expected;
    for (int change = 0; change < 12; ++change) {
      const int first = number(random);
      if (change % 3 == 2) {
        set.remove(first);
        expected.erase(first);
        continue;
      }
      const int last = first + number(random) % 4;
      set.add(first, last);
      for (int one = first; one <= last; ++one) expected.insert(one);
    }
    std::vector<int> all;
    set.for_each([&](int one) { all.push_back(one); });
    EXPECT_EQ(all, std::vector<int>(expected.begin(), expected.end()));
    EXPECT_EQ(set.size(), static_cast<int>(expected.size()));
    for (std::size_t i = 1; i < set.ranges().size(); ++i)
      EXPECT_GT(set.ranges()[i].first, set.ranges()[i - 1].last + 1) << "ranges are joined";
    for (int one = 0; one < 36; ++one) {
      EXPECT_EQ(set.contains(one), expected.contains(one));
      EXPECT_EQ(set.intersects(RankSet(one, one + 1)), expected.contains(one) || expected.contains(one + 1));
    }
  }
}

// --- the layout ---

/// Each rank is below exactly one, and each place says of the others what theirs say.
void expect_tree(int world_size, int fan_out, const std::vector<int>& leaves) {
  SCOPED_TRACE(std::to_string(world_size) + " ranks, fan-out " + std::to_string(fan_out) + ", " +
               std::to_string(leaves.size()) + " leaves");
  const TreeLayout layout(world_size, fan_out, leaves);
  std::vector<RankSet> below(static_cast<std::size_t>(world_size));
  std::vector<int> parents(static_cast<std::size_t>(world_size), -1);
  int highest = 0;
  for (int rank = 0; rank < world_size; ++rank) {
    const auto place = layout.place_of(rank);
    highest = std::max(highest, place.height);
    RankSet all(rank);
    for (const auto& child : place.children) {
      EXPECT_EQ(std::exchange(parents[static_cast<std::size_t>(child.rank)], rank), -1);
      EXPECT_FALSE(all.intersects(child.ranks));
      EXPECT_TRUE(child.ranks.contains(child.rank));
      EXPECT_EQ(layout.place_of(child.rank).parent, rank);
      all.add(child.ranks);
    }
    below[static_cast<std::size_t>(rank)] = all;
    const auto of_rank_0 = rank == 0 ? leaves.size() : 0U;
    EXPECT_LE(place.children.size(), static_cast<std::size_t>(fan_out) + of_rank_0);
    EXPECT_EQ(place.height == 0, place.children.empty());
  }
  EXPECT_EQ(below[0], RankSet(0, world_size - 1));
  EXPECT_EQ(highest, layout.place_of(0).height);
  for (int rank = 0; rank < world_size; ++rank)
    for (const auto& child : layout.place_of(rank).children)
      EXPECT_EQ(below[static_cast<std::size_t>(child.rank)], child.ranks);
  for (const int leaf : leaves) {
    EXPECT_THAT(layout.place_of(leaf).children, IsEmpty());
    EXPECT_EQ(parents[static_cast<std::size_t>(leaf)], 0);
  }
}

TEST(TreeLayoutTest, HasEachRankOnceAndEachPlaceFitsTheOthers) {
  for (int ranks = 1; ranks <= 40; ++ranks)
    for (const int fan_out : {2, 3, 5, 32}) {
      expect_tree(ranks, fan_out, {});
      if (ranks > 5) expect_tree(ranks, fan_out, {1, 4, ranks - 1});
    }
  expect_tree(1024, 32, {1, 33, 500});
}

TEST(TreeLayoutTest, IsAsHighAsItHasToBe) {
  const auto height = [](int ranks) { return TreeLayout(ranks, 32).place_of(0).height; };
  EXPECT_EQ(height(2), 1);
  EXPECT_EQ(height(33), 1);
  EXPECT_EQ(height(34), 2);
  EXPECT_EQ(height(1024), 2);
  EXPECT_EQ(height(16384), 3);
  EXPECT_TRUE(TreeLayout(33, 32).is_star());
  EXPECT_FALSE(TreeLayout(34, 32).is_star());
}

// --- words ---

TEST(TreeWordsTest, AreReadAsTheyWereWritten) {
  const tree::Up up{7, {{RankSet(3, 900), {1, 2, 3}}, {RankSet(1), {}}}};
  const auto read = tree::decoded(*encoded(up), 1000);
  ASSERT_TRUE(read);
  const auto& same = std::get<tree::Up>(*read);
  EXPECT_EQ(same.layout, 7U);
  ASSERT_EQ(same.said.size(), 2U);
  EXPECT_EQ(same.said[0].by, RankSet(3, 900));
  EXPECT_EQ(same.said[0].bytes, (Bytes{1, 2, 3}));
  const tree::Sign sign{1, 300, {{5, milliseconds(901)}}, {{16000, {9}}}};
  const auto again = std::get<tree::Sign>(*tree::decoded(*encoded(sign), 20000));
  EXPECT_EQ(again.taken, 300U);
  EXPECT_EQ(again.silent, sign.silent);
  EXPECT_EQ(again.beats, sign.beats);
  EXPECT_EQ(std::get<tree::Relaid>(*tree::decoded(*encoded(tree::Relaid{2, 4, {5, 6}}), 7)).leaves,
            (std::vector<int>{5, 6}));
}

TEST(TreeWordsTest, WhatIsCutShortOrOfAnotherWorldIsNone) {
  const auto whole = *encoded(tree::Up{7, {{RankSet(3, 900), {1, 2, 3}}}});
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(tree::decoded(std::span(whole).first(size), 1000)) << size;
  EXPECT_FALSE(tree::decoded(Bytes{99}, 1000));
  Bytes longer = whole;
  longer.push_back(0);
  EXPECT_FALSE(tree::decoded(longer, 1000));
  EXPECT_TRUE(tree::decoded(whole, 901));
  EXPECT_FALSE(tree::decoded(whole, 900)) << "there is no rank 900";
  EXPECT_FALSE(tree::decoded(*encoded(tree::Up{7, {{RankSet(), {1}}}}), 1000)) << "nobody says it";
}

// --- what is put together ---

std::optional<Bytes> same(std::span<const std::uint8_t> one, std::span<const std::uint8_t> other) {
  if (!std::ranges::equal(one, other)) return std::nullopt;
  return Bytes(one.begin(), one.end());
}

class JointMessagesTest : public ::testing::Test {
 protected:
  /// "1-3:a 4:b"
  std::string due() {
    std::string text;
    for (const tree::Said& said : joint_.take_due(now_)) {
      if (!text.empty()) text += ' ';
      for (const auto& [first, last] : said.by.ranges())
        text += std::to_string(first) + (last != first ? "-" + std::to_string(last) : "");
      text += ":" + std::string(said.bytes.begin(), said.bytes.end());
    }
    return text;
  }
  void add(int rank, char word) { joint_.add({RankSet(rank), {static_cast<std::uint8_t>(word)}}, now_); }

  SteadyClock::time_point now_{seconds(1000)};
  JointMessages joint_{3, same};
};

TEST_F(JointMessagesTest, WhatAllSayGoesOnAtOnce) {
  add(1, 'a');
  add(2, 'a');
  EXPECT_EQ(due(), "");
  add(3, 'a');
  EXPECT_EQ(due(), "1-3:a");
  EXPECT_EQ(joint_.next_due(), SteadyClock::time_point::max());
}

TEST_F(JointMessagesTest, WhatSomeSayWaitsALittle) {
  add(1, 'a');
  add(3, 'b');
  now_ += milliseconds(1);
  EXPECT_EQ(due(), "");
  EXPECT_EQ(joint_.next_due(), now_ + milliseconds(1));
  now_ += milliseconds(1);
  EXPECT_EQ(due(), "1:a 3:b");
  add(2, 'a');
  add(3, 'a');
  EXPECT_EQ(due(), "");
  now_ += milliseconds(2);
  EXPECT_EQ(due(), "2:a 3:a") << "after its b, so that it is another one";
}

TEST_F(JointMessagesTest, WhoIsLateCompletesWhatHasGoneOn) {
  add(1, 'a');
  now_ += milliseconds(2);
  EXPECT_EQ(due(), "1:a");
  add(2, 'a');
  add(3, 'a');
  EXPECT_EQ(due(), "2-3:a") << "nobody is missing any more";
}

TEST_F(JointMessagesTest, ARanksOrderStaysAsItIs) {
  add(1, 'a');
  add(1, 'b');
  add(2, 'b');
  add(3, 'b');
  EXPECT_EQ(due(), "1:a 1-3:b") << "what came before goes first";
  add(2, 'a');
  add(2, 'b');
  add(3, 'a');
  add(3, 'b');
  add(1, 'b');
  EXPECT_EQ(due(), "2-3:a 1-3:b");
}

// --- the channel ---

/// Ranks that say something to rank 0 now and then, and hear what it says to all. What is said has a number
/// of its own for each rank, so that what is lost, doubled or in another order shows.
class TalkingRanks {
 public:
  explicit TalkingRanks(TreeNet::Options options)
      : ranks_(options.ranks),
        net_(std::move(options), [this](int rank) { return turn(rank); }),
        next_beat_(static_cast<std::size_t>(ranks_)),
        heard_(static_cast<std::size_t>(ranks_)),
        heard_at_(static_cast<std::size_t>(ranks_), net_.now()),
        said_(static_cast<std::size_t>(ranks_)),
        said_by_(static_cast<std::size_t>(ranks_)) {}

  TreeNet& net() { return net_; }
  /// It says its next number to rank 0.
  void say(int rank) {
    to_say_.insert(rank);
    net_.wake(rank, net_.now());
  }
  void say_to_all() {
    ++to_tell_;
    net_.wake(0, net_.now());
  }

  /// Rank 0 says something to all and ends; the others end once they hear it.
  void end_all() {
    ends_ = true;
    say_to_all();
  }

  void end(int rank) {
    ended_.insert(rank);
    net_.wake(rank, net_.now());
  }

  /// Nothing lost, doubled or in another order.
  void expect_all_heard(const std::set<int>& except = {}) const {
    for (int rank = 0; rank < ranks_; ++rank) {
      if (except.contains(rank)) continue;
      SCOPED_TRACE("rank " + std::to_string(rank));
      EXPECT_EQ(heard_[static_cast<std::size_t>(rank)], counted(told_));
      EXPECT_EQ(said_by_[static_cast<std::size_t>(rank)], counted(said_[static_cast<std::size_t>(rank)]));
    }
  }
  const std::set<int>& ever_silent() const { return ever_silent_; }
  const RankSet& well() const { return well_; }
  const std::set<int>& silent() const { return silent_; }
  const std::set<int>& beaten() const { return beaten_; }
  /// Whom rank 0 would have named, that names a rank unheard of for longer than 900 ms.
  const std::set<int>& named() const { return named_; }

 private:
  static std::vector<int> counted(int count) {
    std::vector<int> all;
    for (int number = 1; number <= count; ++number) all.push_back(number);
    return all;
  }
  static MessageBytes bytes_of(char kind, int number) {
    return std::make_shared<const Bytes>(Bytes{static_cast<std::uint8_t>(kind),
                                               static_cast<std::uint8_t>(number & 0xff),
                                               static_cast<std::uint8_t>(number >> 8)});
  }
  static int number_of(const Bytes& bytes) { return bytes[1] | bytes[2] << 8; }

  TreeNet::Rest turn(int rank) {
    MessageChannel& channel = net_.channel(rank);
    while (const auto message = channel.poll()) take(rank, *message);
    if (to_say_.erase(rank) > 0) channel.send(0, bytes_of('s', ++said_[static_cast<std::size_t>(rank)]));
    if (rank == 0)
      for (; to_tell_ > 0; --to_tell_) channel.send_to_all(bytes_of('t', ++told_));
    auto& next_beat = next_beat_[static_cast<std::size_t>(rank)];
    if (net_.now() >= next_beat) {
      channel.send_quietly(0, bytes_of('b', rank));
      next_beat = net_.now() + milliseconds(600);
    }
    if (ended_.contains(rank) ||
        (ends_ && heard_[static_cast<std::size_t>(rank)].size() == static_cast<std::size_t>(told_))) {
      channel.leave(bytes_of('l', 0));
      net_.end(rank);
    }
    if (rank == 0)
      if (const auto heard = channel.heard_of()) {
        heard->well.for_each([&](int one) { heard_at_[static_cast<std::size_t>(one)] = net_.now(); });
        for (const auto& [one, lasts] : heard->silent) {
          auto& at = heard_at_[static_cast<std::size_t>(one)];
          at = std::min(at, net_.now() - lasts);
        }
        well_ = heard->well;
        silent_.clear();
        for (const auto& [one, lasts] : heard->silent) silent_.insert(one);
        ever_silent_.insert(silent_.begin(), silent_.end());
      }
    for (int one = 1; rank == 0 && one < ranks_; ++one)
      if (!ended_.contains(one) && net_.now() - heard_at_[static_cast<std::size_t>(one)] > milliseconds(900))
        named_.insert(one);
    return {next_beat};
  }

  void take(int rank, const Message& message) {
    if (rank == 0) {
      heard_at_[static_cast<std::size_t>(message.source)] = net_.now();
      message.others.for_each([&](int one) { heard_at_[static_cast<std::size_t>(one)] = net_.now(); });
    }
    const int number = number_of(message.bytes);
    switch (message.bytes[0]) {
      case 't':
        EXPECT_EQ(message.source, 0);
        heard_[static_cast<std::size_t>(rank)].push_back(number);
        break;
      case 's':
        EXPECT_EQ(rank, 0);
        said_by_[static_cast<std::size_t>(message.source)].push_back(number);
        message.others.for_each(
            [&](int other) { said_by_[static_cast<std::size_t>(other)].push_back(number); });
        break;
      case 'l':
        break;
      default:
        EXPECT_EQ(number, message.source);
        if (rank == 0) beaten_.insert(number);
    }
  }

  int ranks_;
  TreeNet net_;
  std::set<int> to_say_;
  int to_tell_ = 0, told_ = 0;
  std::vector<SteadyClock::time_point> next_beat_;
  std::vector<std::vector<int>> heard_;
  std::vector<SteadyClock::time_point> heard_at_;
  std::vector<int> said_;
  std::vector<std::vector<int>> said_by_;
  std::set<int> ever_silent_, silent_, beaten_, named_;
  std::set<int> ended_;
  bool ends_ = false;
  RankSet well_;
};

TreeNet::Options net_of(int ranks, int fan_out, std::uint64_t seed = 1, microseconds most_delay = {}) {
  return {
      .ranks = ranks, .seed = seed, .most_delay = most_delay, .tree = {.fan_out = fan_out, .merge = same}};
}

TEST(TreeChannelTest, RankZeroSpeaksWithFewAndHearsOfAll) {
  TalkingRanks ranks(net_of(40, 3));
  const auto start = ranks.net().now();
  ranks.net().run_until(start + milliseconds(700));
  const auto sent = ranks.net().sent_by(0);
  ranks.say_to_all();
  for (int rank = 0; rank < 40; ++rank) ranks.say(rank);
  ranks.net().run_until(start + milliseconds(1000));
  EXPECT_EQ(ranks.net().sent_by(0) - sent, 3U) << "to its children, and nobody else";
  ranks.expect_all_heard();
  ranks.net().run_until(start + seconds(4));
  EXPECT_EQ(ranks.well(), RankSet(1, 39));
  EXPECT_THAT(ranks.ever_silent(), IsEmpty());
  EXPECT_EQ(ranks.beaten().size(), 40U) << "what is sent quietly gets there as well";
}

TEST(TreeChannelTest, FewRanksHaveNoTree) {
  TalkingRanks ranks(net_of(4, 3));
  ranks.say_to_all();
  ranks.say(3);
  ranks.net().run_until(ranks.net().now() + seconds(1));
  ranks.expect_all_heard();
  EXPECT_EQ(ranks.well(), RankSet()) << "rank 0 hears all of them itself";
}

TEST(TreeChannelTest, OnlyTheOneThatStandsIsSilentAndTheOthersGoOn) {
  for (const int standing : {1, 2, 6, 14}) {  // right below rank 0, further down, a leaf
    SCOPED_TRACE("rank " + std::to_string(standing) + " stands");
    TalkingRanks ranks(net_of(15, 2));
    const auto start = ranks.net().now();
    ranks.net().run_until(start + seconds(2));
    ranks.net().stop(standing, start + seconds(20));
    ranks.net().run_until(start + milliseconds(3600));
    EXPECT_THAT(ranks.silent(), ElementsAre(standing)) << "within a heartbeat and a half";
    RankSet others(1, 14);
    others.remove(standing);
    EXPECT_EQ(ranks.well(), others);
    ranks.say_to_all();
    for (int rank = 0; rank < 15; ++rank)
      if (rank != standing) ranks.say(rank);
    ranks.net().run_until(start + seconds(10));
    EXPECT_THAT(ranks.ever_silent(), ElementsAre(standing));
    EXPECT_FALSE(ranks.well().contains(standing));
    ranks.say(standing);
    ranks.net().run_until(start + seconds(22));
    ranks.expect_all_heard();
    EXPECT_EQ(ranks.well(), RankSet(1, 14)) << "it is back";
  }
}

/// A whole host, whose ranks are neighbours in the tree: each layout would make another one of them a relay.
TEST(TreeChannelTest, RanksThatStandTogetherAreNamedAndNobodyElse) {
  TalkingRanks ranks(net_of(80, 3));
  const auto start = ranks.net().now();
  ranks.net().run_until(start + seconds(2));
  std::set<int> standing;
  for (int rank = 27; rank < 35; ++rank) {
    standing.insert(rank);
    ranks.net().stop(rank, start + seconds(8));
  }
  ranks.net().run_until(start + milliseconds(4300));
  EXPECT_EQ(ranks.named(), standing);
  ranks.say_to_all();
  for (int rank = 0; rank < 80; ++rank)
    if (!standing.contains(rank)) ranks.say(rank);
  ranks.net().run_until(start + milliseconds(4400));
  ranks.expect_all_heard(standing);
  ranks.net().run_until(start + seconds(12));
  EXPECT_EQ(ranks.named(), standing);
  EXPECT_EQ(ranks.well(), RankSet(1, 79)) << "all are back";
  ranks.expect_all_heard();
}

/// Those below a relay that has ended, or that stands, hear the end as well.
TEST(TreeChannelTest, AllHearTheEnd) {
  for (const int standing : {-1, 1, 9, 39}) {
    SCOPED_TRACE("rank " + std::to_string(standing) + " stands");
    TalkingRanks ranks(net_of(40, 3));
    const auto start = ranks.net().now();
    for (int rank = 0; rank < 40; ++rank) ranks.say(rank);
    ranks.net().run_until(start + seconds(2));
    if (standing > 0) ranks.net().stop(standing, start + seconds(60));
    ranks.end_all();
    ranks.net().run_until(start + seconds(3));
    ranks.expect_all_heard({standing});
    ranks.net().run_until(start + seconds(70));
    ranks.expect_all_heard();
  }
}

TEST(TreeChannelTest, WhereARelayEndsTheOthersAreReachedAllTheSame) {
  TalkingRanks ranks(net_of(40, 3));
  const auto start = ranks.net().now();
  for (int rank = 0; rank < 40; ++rank) ranks.say(rank);
  ranks.say_to_all();
  ranks.net().run_until(start + seconds(2));
  const std::set<int> ended{1, 2, 14, 39};
  for (const int rank : ended) ranks.end(rank);
  ranks.net().run_until(start + milliseconds(2010));
  ranks.say_to_all();
  for (int rank = 0; rank < 40; ++rank)
    if (!ended.contains(rank)) ranks.say(rank);
  ranks.net().run_until(start + milliseconds(2100));
  ranks.expect_all_heard(ended);
  ranks.net().run_until(start + seconds(6));
  EXPECT_THAT(ranks.named(), IsEmpty());
}

/// Whatever stops when, what was said arrives once and in order.
TEST(TreeChannelTest, NothingIsLostOrDoubledWhereRanksStand) {
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const int count = 6 + static_cast<int>(seed % 16);
    TalkingRanks ranks(net_of(count, 2 + static_cast<int>(seed % 3), seed, microseconds(3000)));
    auto& random = ranks.net().random();
    const auto roll = [&](int below) { return std::uniform_int_distribution<int>(0, below - 1)(random); };
    auto at = ranks.net().now();
    std::set<int> stood;
    for (int event = 0; event < 60; ++event) {
      at += milliseconds(roll(150));
      ranks.net().run_until(at);
      const int rank = roll(count);
      if (event % 12 == 5 && rank > 0) {
        stood.insert(rank);
        ranks.net().stop(rank, at + milliseconds(roll(4000)));
      } else if (event % 3 == 0)
        ranks.say_to_all();
      else if (event % 3 == 1)
        for (int one = 0; one < count; ++one) ranks.say(one);
      else
        ranks.say(rank);
    }
    ranks.net().run_until(at + seconds(15));
    ranks.expect_all_heard();
    EXPECT_EQ(ranks.well(), RankSet(1, count - 1));
    EXPECT_TRUE(std::ranges::includes(stood, ranks.named()));
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace footplate
