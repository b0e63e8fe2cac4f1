// The tuner as NCCL drives it: through the exported tables, with cost tables like NCCL's.
#include "runtime/cuda/tuner_plugin.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <sstream>
#include <thread>

#include "plugin_host.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using nccl_abi::Tuner;
using nccl_abi::TunerV6;
using test::Costs;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kCommunicator = 0x1234;

/// One rank's side of a communicator.
class Rank {
 public:
  explicit Rank(const Tuner& table, int most_channels = 32) : table_(table) {
    tuning.set_most_channels(most_channels);
    bind_tuner(&tuning);
    nccl_abi::NvlDomains domains{1, 4, 4};
    EXPECT_EQ(table_.init(&context_, kCommunicator, 4, 1, nullptr, &domains, nullptr), nccl_abi::kSuccess);
    bind_tuner(nullptr);
  }
  ~Rank() { EXPECT_EQ(table_.finalize(context_), nccl_abi::kSuccess); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  void rules(std::uint32_t version, const std::vector<TuningRule>& list) {
    const auto proposed = tuning.propose(version, list);
    ASSERT_TRUE(proposed) << proposed.error().message;
    ASSERT_TRUE(tuning.switch_to(version));
  }
  /// Returns how many channels it asks for.
  int ask(int function, std::size_t bytes, Costs& costs) {
    int channels = 0;
    EXPECT_EQ(table_.collective(context_, function, bytes, 1, costs.pointer(), nccl_abi::kAlgorithms,
                                nccl_abi::kProtocols, 0, &channels),
              nccl_abi::kSuccess);
    return channels;
  }
  TunerDigest digest() const {
    const auto digests = tuner_digests(tuning);
    EXPECT_EQ(digests.size(), 1u);
    EXPECT_EQ(digests.at(0).communicator, kCommunicator);
    return digests.at(0).digest;
  }

  Tuning tuning;

 private:
  const Tuner& table_;
  void* context_ = nullptr;
};

TuningRule rule(NcclCollective collective, std::size_t min, std::size_t max,
                std::optional<Algorithm> algorithm, std::optional<WireProtocol> protocol = {},
                int channels = 0) {
  return {collective, min, max, algorithm, protocol, channels};
}

int cell(Algorithm algorithm, WireProtocol protocol) {
  return static_cast<int>(algorithm) * nccl_abi::kProtocols + static_cast<int>(protocol);
}

class TunerTest : public testing::TestWithParam<const char*> {
 protected:
  const Tuner& table() {
    const auto* found = test::exported<Tuner>(GetParam());
    EXPECT_NE(found, nullptr) << GetParam();
    return *found;
  }
  std::mt19937_64 random_{7};
};
INSTANTIATE_TEST_SUITE_P(Versions, TunerTest, testing::Values("ncclTunerPlugin_v5", "ncclTunerPlugin_v6"));

TEST(TunerTables, LeaveChunkSizesToNccl) {
  const auto* table = test::exported<TunerV6>("ncclTunerPlugin_v6");
  ASSERT_NE(table, nullptr);
  EXPECT_STREQ(table->v5.name, "footplate");
  EXPECT_EQ(table->chunk_size, nullptr);
}

TEST_P(TunerTest, TheFirstRuleThatFitsIsTheCheapest) {
  Rank rank(table());
  rank.rules(1, {rule(NcclCollective::all_reduce, 0, 1 << 20, Algorithm::tree, WireProtocol::ll128, 4),
                 rule(NcclCollective::all_reduce, 0, 1 << 24, Algorithm::nvls),
                 rule(NcclCollective::all_gather, 0, 1 << 20, {}, WireProtocol::simple)});
  Costs costs;
  const auto ask = [&](int function, std::size_t bytes) {
    costs.cells.fill(5);
    costs.at(1, 2) = 2;  // NCCL's own: ring, simple
    costs.at(4, 0) = costs.at(4, 1) = -1;
    return rank.ask(function, bytes, costs);
  };
  EXPECT_EQ(ask(nccl_abi::kAllReduce, 1 << 20), 4);
  EXPECT_EQ(costs.choice(), cell(Algorithm::tree, WireProtocol::ll128));
  EXPECT_EQ(ask(nccl_abi::kAllReduce, (1 << 20) + 1), 0);
  EXPECT_EQ(costs.choice(), cell(Algorithm::nvls, WireProtocol::simple)) << "the one protocol it has";
  EXPECT_EQ(ask(nccl_abi::kAllReduce, (1 << 24) + 1), 0);
  EXPECT_EQ(costs.choice(), cell(Algorithm::ring, WireProtocol::simple)) << "NCCL's own";
  ask(nccl_abi::kAllGather, 100);
  EXPECT_EQ(costs.choice(), cell(Algorithm::ring, WireProtocol::simple));
  ask(nccl_abi::kBroadcast, 100);
  EXPECT_EQ(costs.choice(), cell(Algorithm::ring, WireProtocol::simple));
}

TEST_P(TunerTest, WhatCantBeHadStaysSo) {
  Rank rank(table());
  rank.rules(1, {rule(NcclCollective::all_reduce, 0, 1000, Algorithm::tree, WireProtocol::ll128, 4)});
  Costs costs;
  costs.cells.fill(5);
  costs.at(0, 1) = -1;
  const Costs before = costs;
  EXPECT_EQ(rank.ask(nccl_abi::kAllReduce, 1000, costs), 0) << "channels belong to what isn't done";
  EXPECT_EQ(costs.cells, before.cells);
}

TEST_P(TunerTest, WithAnyRulesAndCostsNoCellIsRaisedAndOneAtMostLowered) {
  for (int round = 0; round < 200; ++round) {
    Rank rank(table(), 16);
    std::vector<TuningRule> rules(random_() % 8);
    for (TuningRule& one : rules) {
      one.collective = static_cast<NcclCollective>(random_() % 5);
      one.max_bytes = random_() % 2000;
      one.min_bytes = one.max_bytes / 2;
      if (random_() % 2 == 0) one.algorithm = static_cast<Algorithm>(random_() % 7);
      if (random_() % 2 == 0) one.protocol = static_cast<WireProtocol>(random_() % 3);
      if (one.algorithm == Algorithm::ring) one.channels = static_cast<int>(random_() % 17);
    }
    rank.rules(1, rules);
    for (int i = 0; i < 50; ++i) {
      Costs costs = i % 10 == 0 ? Costs{} : Costs::random(random_);
      if (i % 10 == 0) costs.cells.fill(-1);
      const Costs before = costs;
      const int channels = rank.ask(static_cast<int>(random_() % 12), random_() % 2200, costs);
      EXPECT_LE(channels, 16);
      int lowered = 0;
      for (int at = 0; at < Costs::kCells; ++at) {
        const auto c = static_cast<std::size_t>(at);
        if (costs.cells[c] == before.cells[c]) continue;
        EXPECT_GE(before.cells[c], 0) << "a cell of -1 was raised";
        EXPECT_EQ(costs.cells[c], 0);
        ++lowered;
      }
      EXPECT_LE(lowered, 1);
      EXPECT_TRUE(channels == 0 || lowered == 1);
    }
  }
}

/// Rules of a version, the same on whoever makes them.
std::vector<TuningRule> rules_of(std::uint32_t version) {
  std::mt19937_64 random(version);
  std::vector<TuningRule> rules;
  for (int i = 0; i < 6; ++i)
    rules.push_back(rule(static_cast<NcclCollective>(random() % 5), 0, random() % (1 << 20),
                         random() % 2 == 0 ? Algorithm::ring : Algorithm::tree, {},
                         static_cast<int>(random() % 8)));
  return rules;
}

TEST_P(TunerTest, AllRanksDecideAlike) {
  constexpr int kRanks = 8;
  constexpr std::uint32_t kSwaps = 50;
  constexpr int kCollectives = 200;  ///< between two swaps
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int rank = 0; rank < kRanks; ++rank) ranks.push_back(std::make_unique<Rank>(table()));
  std::uint64_t equal = 0;
  std::uint64_t asked = 0;
  for (std::uint32_t version = 1; version <= kSwaps; ++version) {
    for (auto& rank : ranks) rank->rules(version, rules_of(version));
    for (int i = 0; i < kCollectives; ++i) {
      const int function = static_cast<int>(random_() % 5);
      const std::size_t bytes = random_() % (1 << 21);
      const Costs costs = Costs::random(random_);
      Costs first = costs;
      const int channels = ranks[0]->ask(function, bytes, first);
      for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
        Costs other = costs;
        ++asked;
        if (ranks[rank]->ask(function, bytes, other) == channels && other.choice() == first.choice()) ++equal;
      }
    }
    std::vector<TunerDigest> digests;
    for (const auto& rank : ranks) digests.push_back(rank->digest());
    const auto alike = compare_digests(digests);
    ASSERT_TRUE(alike) << alike.error().message;
    ASSERT_EQ(digests[0].collectives, std::uint64_t{version} * kCollectives);
  }
  EXPECT_EQ(equal, asked);
}

TEST_P(TunerTest, ARankThatDecidesOtherwiseIsNamed) {
  const auto difference = [&](auto change) {
    Rank first(table());
    Rank second(table());
    for (Rank* rank : {&first, &second}) {
      rank->rules(1, rules_of(1));
      if (rank == &second) change(*rank);
      Costs costs;
      costs.cells.fill(5);
      rank->ask(nccl_abi::kAllReduce, 100, costs);
    }
    const auto compared = compare_digests({first.digest(), second.digest()});
    return compared ? std::string("alike") : compared.error().message;
  };
  Costs costs;
  costs.cells.fill(5);
  EXPECT_EQ(difference([](Rank&) {}), "alike");
  EXPECT_THAT(difference([](Rank& rank) { rank.rules(2, rules_of(1)); }),
              HasSubstr("rank 1 tunes NCCL otherwise than rank 0: by rules 2 instead of 1"));
  EXPECT_THAT(difference([&](Rank& rank) { rank.ask(nccl_abi::kAllReduce, 100, costs); }),
              HasSubstr("after 2 collectives instead of 1"));
  EXPECT_THAT(difference([&](Rank& rank) { rank.rules(1, rules_of(3)); }), HasSubstr("costs differ"));
}

TEST_P(TunerTest, OrderBelongsToTheDigest) {
  Rank first(table());
  Rank second(table());
  Costs costs = Costs::random(random_);
  first.ask(nccl_abi::kAllReduce, 100, costs);
  first.ask(nccl_abi::kBroadcast, 100, costs);
  second.ask(nccl_abi::kBroadcast, 100, costs);
  second.ask(nccl_abi::kAllReduce, 100, costs);
  EXPECT_NE(first.digest(), second.digest());
}

TEST_P(TunerTest, WithoutRulesOrAtAllNcclChooses) {
  Rank rank(table());
  Costs costs = Costs::random(random_);
  const Costs before = costs;
  EXPECT_EQ(rank.ask(nccl_abi::kAllReduce, 100, costs), 0);
  EXPECT_EQ(costs.cells, before.cells);
  void* context = &costs;
  ASSERT_EQ(table().init(&context, 1, 4, 1, nullptr, nullptr, nullptr), nccl_abi::kSuccess);
  EXPECT_EQ(context, nullptr) << "nobody has bound a tuner";
  int channels = 0;
  EXPECT_EQ(table().collective(context, nccl_abi::kAllReduce, 100, 1, costs.pointer(), 7, 3, 0, &channels),
            nccl_abi::kSuccess);
  EXPECT_EQ(costs.cells, before.cells);
  EXPECT_EQ(table().finalize(context), nccl_abi::kSuccess);
}

TEST(Tuning, RulesCountFromTheSwitchOn) {
  Tuning tuning;
  tuning.set_most_channels(8);
  ASSERT_TRUE(tuning.propose(1, rules_of(1)));
  EXPECT_EQ(tuning.version(), 0u);
  EXPECT_THAT(tuning.rules(), IsEmpty());
  EXPECT_FALSE(tuning.switch_to(2));
  EXPECT_TRUE(tuning.switch_to(1));
  EXPECT_EQ(tuning.version(), 1u);
  EXPECT_EQ(tuning.rules().size(), 6u);
  EXPECT_FALSE(tuning.switch_to(1)) << "it is in force already, the other table holds what was before";
  ASSERT_TRUE(tuning.propose(2, {}));
  ASSERT_TRUE(tuning.propose(3, rules_of(3))) << "another one instead";
  EXPECT_FALSE(tuning.switch_to(2));
  EXPECT_TRUE(tuning.switch_to(3));
}

TEST(Tuning, RulesThatCouldHangAJobAreRefused) {
  Tuning tuning;
  const auto refusal = [&](const TuningRule& one) {
    const auto proposed = tuning.propose(1, {one});
    return proposed ? std::string("accepted") : proposed.error().message;
  };
  using C = NcclCollective;
  EXPECT_THAT(refusal(rule(C::all_reduce, 0, 9, Algorithm::ring, {}, 1)),
              HasSubstr("before the communicators"));
  tuning.set_most_channels(8);
  EXPECT_EQ(refusal(rule(C::all_reduce, 0, 9, Algorithm::ring, {}, 8)), "accepted");
  EXPECT_EQ(refusal(rule(C::all_reduce, 0, 1 << 20, Algorithm::tree, WireProtocol::ll128, 9)),
            "all_reduce ..1MiB tree ll128 9 channels: channels can be 0 (NCCL's choice) to 8, "
            "which is what the communicators have");
  EXPECT_THAT(refusal(rule(C::all_reduce, 0, 9, Algorithm::nvls, {}, 4)), HasSubstr("ring or tree"));
  EXPECT_THAT(refusal(rule(C::all_reduce, 0, 9, {}, WireProtocol::ll, 4)), HasSubstr("ring or tree"));
  EXPECT_THAT(refusal(rule(C::all_reduce, 10, 9, {})), HasSubstr("min_bytes is larger"));
  EXPECT_THAT(tuning.propose(1, std::vector<TuningRule>(33)).error().message, HasSubstr("at most 32"));
}

TEST(Tuning, RulesComeOutOfTheSettings) {
  Settings settings = Settings::defaults(runtime_schema());
  const auto rules = [&] {
    std::string text;
    for (const TuningRule& one : tuning_rules(settings)) text += (text.empty() ? "" : "; ") + to_string(one);
    return text;
  };
  EXPECT_EQ(rules(), "");
  EXPECT_EQ(version_of(tuning_rules(settings)), 0u);
  settings.set("nccl.rules", std::string("..1MiB tree"), "x");
  EXPECT_EQ(rules(), "all_reduce ..1MiB tree");
  const auto version = version_of(tuning_rules(settings));
  settings.set("nccl.algo", std::string("ring"), "x");
  EXPECT_EQ(rules(), "all_reduce ..1MiB tree; all_reduce ring") << "behind the rules: for what they leave";
  EXPECT_NE(version_of(tuning_rules(settings)), version);
  settings.set("nccl.proto", std::string("no_ll128"), "x");
  EXPECT_EQ(rules(),
            "all_reduce ..1MiB tree; all_reduce ring no_ll128; all_reduce no_ll128; broadcast no_ll128; "
            "reduce no_ll128; "
            "all_gather no_ll128; reduce_scatter no_ll128");
  settings.set("nccl.algo", std::string("ring"), "environment");
  settings.set("nccl.proto", std::string("simple"), "environment, NCCL_PROTO=Simple");
  EXPECT_EQ(rules(), "all_reduce ..1MiB tree") << "NCCL reads the environment itself";
}

TEST(Tuning, WhatCantBeDoneIsToldOnce) {
  Tuning tuning;
  ASSERT_TRUE(tuning.propose(1, tuning_rules_from_string("..1MiB nvls; no_ll128").value()));
  ASSERT_TRUE(tuning.switch_to(1));
  Costs costs;
  const auto decide = [&](std::size_t bytes) {
    costs.cells.fill(5);
    costs.at(1, 1) = 1;  // ring, ll128
    for (int protocol = 0; protocol < 3; ++protocol) costs.at(4, protocol) = -1;
    tuning.decide(nccl_abi::kAllReduce, bytes, costs.cells.data(), 7, 3);
    return costs.choice();
  };
  decide(2 << 20);
  EXPECT_NE(costs.choice(), cell(Algorithm::ring, WireProtocol::ll128));
  EXPECT_FALSE(tuning.take_unmet());
  EXPECT_EQ(decide(100), cell(Algorithm::ring, WireProtocol::ll128)) << "as it would have";
  decide(200);
  const auto unmet = tuning.take_unmet();
  ASSERT_TRUE(unmet);
  EXPECT_EQ(unmet->bytes, 100u);
  EXPECT_EQ(unmet->protocol, WireProtocol::ll128);
  decide(300);
  EXPECT_FALSE(tuning.take_unmet());
  ASSERT_TRUE(tuning.propose(2, tuning_rules_from_string("nvls").value()));
  ASSERT_TRUE(tuning.switch_to(2));
  decide(400);
  EXPECT_EQ(tuning.take_unmet().value().bytes, 400u) << "other rules";
}

/// Readers see whole tables, while another thread swaps them as fast as it can.
TEST(Tuning, ATableIsNeverSeenHalfWritten) {
  Tuning tuning;
  tuning.set_most_channels(64);
  // Versions and channels belong together.
  const auto channels_of = [](std::uint32_t version) { return static_cast<int>(1 + version % 64); };
  std::atomic<bool> ended = false;
  std::atomic<int> torn = 0;
  std::atomic<int> looks = 0;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] {
      while (!ended) {
        Costs costs;
        costs.cells.fill(5);
        const auto decision = tuning.decide(nccl_abi::kAllReduce, 100, costs.cells.data(), 7, 3);
        if (decision.version != 0 && decision.channels != channels_of(decision.version)) ++torn;
        ++looks;
      }
    });
  std::uint32_t version = 0;
  while (version < 2000 || looks < 1000) {
    ++version;
    const std::vector<TuningRule> rules(1 + version % 7, rule(NcclCollective::all_reduce, 0, 1000,
                                                              Algorithm::ring, {}, channels_of(version)));
    const bool switched = !tuning.propose(version, rules) || tuning.switch_to(version);
    EXPECT_TRUE(switched);
  }
  ended = true;
  for (auto& reader : readers) reader.join();
  EXPECT_EQ(torn, 0);
  EXPECT_GT(tuning.version(), 0u);
}

/// As NCCL 2.31 reads a selection (src/config/algorithm_parser.cc): names that it stands for.
std::set<std::string> selected(const std::string& selection) {
  const std::vector<std::string> kNames{"TREE_LL",     "TREE_LL128",           "TREE_SIMPLE",
                                        "RING_LL",     "RING_LL128",           "RING_SIMPLE",
                                        "NVLS_SIMPLE", "COLLNET_CHAIN_SIMPLE", "COLLNET_DIRECT_SIMPLE",
                                        "PAT_SIMPLE",  "NVLSTREE_SIMPLE"};
  const auto parts = [](const std::string& text, char at) {
    std::vector<std::string> list;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, at);) list.push_back(part);
    return list;
  };
  std::set<std::string> names;
  for (const std::string& term : parts(selection, ','))
    for (const std::string& name : kNames) {
      bool fits = true;
      for (std::string factor : parts(term, '+')) {
        const bool negated = factor.front() == '^';
        if (negated) factor.erase(0, 1);
        EXPECT_TRUE(std::any_of(kNames.begin(), kNames.end(),
                                [&](const std::string& one) { return one.starts_with(factor); }))
            << factor << " is no name";
        fits = fits && name.starts_with(factor) != negated;
      }
      if (fits) names.insert(name);
    }
  return names;
}

TEST(Selection, MeansTheCellsOfTheRule) {
  constexpr std::array kAlgorithmNames{"TREE",     "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                       "NVLSTREE", "PAT"};
  constexpr std::array kProtocolNames{"LL", "LL128", "SIMPLE"};
  const auto name_of = [&](std::size_t algorithm, std::size_t protocol) {
    return std::string(kAlgorithmNames.at(algorithm)) + "_" + kProtocolNames.at(protocol);
  };
  const auto all = selected("TREE,RING,COLLNET,NVLS,PAT");
  ASSERT_EQ(all.size(), 11u);
  for (int a = -1; a < nccl_abi::kAlgorithms; ++a)
    for (int p = -1; p <= nccl_abi::kProtocols; ++p) {  // the last one: any but LL128
      TuningRule rule;
      if (a >= 0) rule.algorithm = static_cast<Algorithm>(a);
      if (p >= 0 && p < nccl_abi::kProtocols) rule.protocol = static_cast<WireProtocol>(p);
      rule.no_ll128 = p == nccl_abi::kProtocols;
      std::set<std::string> wanted;
      for (std::size_t i = 0; i < nccl_abi::kAlgorithms; ++i)
        for (std::size_t j = 0; j < nccl_abi::kProtocols; ++j)
          if ((a < 0 || static_cast<int>(i) == a) && (!rule.protocol || static_cast<int>(j) == p) &&
              !(rule.no_ll128 && j == 1) && all.contains(name_of(i, j)))
            wanted.insert(name_of(i, j));
      const std::string selection = selection_of(rule);
      if (wanted.empty())
        continue;  // trees of switches know one protocol: NCCL's tuner says that it can't be
      EXPECT_EQ(selection.empty() ? all : selected(selection), wanted)
          << to_string(rule) << ": " << selection;
    }
}

}  // namespace
}  // namespace footplate
