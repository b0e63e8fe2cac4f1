#include "runtime/comm/host_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <set>

namespace footplate {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HostGroups, OneHostOrOneRankOnEachHaveOneLevel) {
  EXPECT_FALSE(HostGroups().have_two_levels());
  EXPECT_FALSE(HostGroups({0}, 0).have_two_levels());
  EXPECT_FALSE(HostGroups({4, 4, 4}, 1).have_two_levels());
  EXPECT_FALSE(HostGroups({0, 1, 2}, 1).have_two_levels());
  EXPECT_TRUE(HostGroups({0, 1, 1}, 0).have_two_levels());
}

TEST(HostGroups, RanksOfAHostShareWhatItCarries) {
  const HostGroups groups({0, 0, 1, 1}, 1);
  EXPECT_THAT(groups.neighbours(), ElementsAre(0));
  EXPECT_THAT(groups.carried(), ElementsAre(3));
  EXPECT_THAT(groups.collected(), ElementsAre(1, 3));
  EXPECT_THAT(groups.collected_by(0), ElementsAre(0, 2));
  EXPECT_THAT(groups.carriers(), ElementsAre(3));
}

TEST(HostGroups, ARankAloneOnItsHostCarriesAllOthers) {
  const HostGroups groups({0, 0, 0, 1}, 3);
  EXPECT_THAT(groups.neighbours(), IsEmpty());
  EXPECT_THAT(groups.carried(), ElementsAre(0, 1, 2));
  EXPECT_THAT(groups.carriers(), ElementsAre(0));
}

TEST(HostGroups, RanksAloneOnTheirHostsAreDealtOut) {
  const std::vector<int> hosts = {0, 0, 0, 1, 2, 3, 4, 5, 6};
  for (const int rank : {0, 1, 2}) EXPECT_EQ(HostGroups(hosts, rank).carried().size(), 2U) << rank;
}

/// All ranks have to agree on who sends what to whom, however ranks and hosts are mixed.
TEST(HostGroups, EveryRankSeesTheSameGroups) {
  for (const std::vector<int>& hosts :
       {std::vector<int>{0, 0, 1, 1}, {0, 1, 0, 1, 0}, {7, 7, 7, 2, 5, 5, 2, 7, 7}, {0, 1, 2}}) {
    const int ranks = static_cast<int>(hosts.size());
    std::vector<HostGroups> all;
    for (int rank = 0; rank < ranks; ++rank) all.emplace_back(hosts, rank);
    for (const HostGroups& one : all) {
      std::set<int> collected(one.collected().begin(), one.collected().end());
      for (std::size_t i = 0; i < one.neighbours().size(); ++i) {
        const HostGroups& neighbour = all[static_cast<std::size_t>(one.neighbours()[i])];
        EXPECT_EQ(hosts[static_cast<std::size_t>(neighbour.rank())],
                  hosts[static_cast<std::size_t>(one.rank())]);
        EXPECT_EQ(one.collected_by(i), neighbour.collected());
        for (const int rank : neighbour.collected()) EXPECT_TRUE(collected.insert(rank).second);
      }
      EXPECT_EQ(collected.size(), hosts.size()) << "each block is summed up once on each host";
      for (const int carrier : one.carriers())
        EXPECT_THAT(all[static_cast<std::size_t>(carrier)].carried(), ::testing::Contains(one.rank()));
      for (const int carried : one.carried())
        EXPECT_THAT(all[static_cast<std::size_t>(carried)].carriers(), ::testing::Contains(one.rank()));
    }
  }
}

}  // namespace
}  // namespace footplate
