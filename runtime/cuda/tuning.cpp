#include "runtime/cuda/tuning.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "protocol/fnv.h"
#include "protocol/nccl/variables.h"

namespace footplate {
namespace {

static_assert(static_cast<int>(Algorithm::pat) + 1 == nccl_abi::kAlgorithms);
static_assert(static_cast<int>(WireProtocol::simple) + 1 == nccl_abi::kProtocols);

Result<void> check(const TuningRule& rule, int most_channels) {
  const auto wrong = [&](const std::string& why) {
    return fail(ErrorKind::usage, to_string(rule) + ": " + why);
  };
  if (rule.min_bytes > rule.max_bytes) return wrong("min_bytes is larger than max_bytes");
  if (rule.channels < 0 || rule.channels > most_channels)
    return wrong(most_channels == 0
                     ? "channels can't be set before the communicators have a number of them"
                     : "channels can be 0 (NCCL's choice) to " + std::to_string(most_channels) +
                           ", which is what the communicators have");
  if (rule.channels > 0 && !rule.is_of_rings_or_trees()) return wrong(TuningRule::kChannelsNeedThese);
  return {};
}

bool wanted(const TuningRule& rule, int algorithm, int protocol) {
  return (!rule.algorithm || static_cast<int>(*rule.algorithm) == algorithm) &&
         (!rule.protocol || static_cast<int>(*rule.protocol) == protocol) &&
         !(rule.no_ll128 && protocol == static_cast<int>(WireProtocol::ll128));
}

/// As NCCL looks: the first cell with the least cost of those that can be had and `take` takes.
template <class Take>
Tuning::Decision cheapest(const float* costs, int algorithms, int protocols, const Take& take) {
  Tuning::Decision best;
  float least = std::numeric_limits<float>::infinity();
  for (int a = 0; a < algorithms; ++a)
    for (int p = 0; p < protocols; ++p) {
      const float cost = costs[a * protocols + p];
      if (cost >= 0 && cost < least && take(a, p)) {
        least = cost;
        best.algorithm = a;
        best.protocol = p;
      }
    }
  return best;
}

}  // namespace

std::vector<TuningRule> tuning_rules(const Settings& settings) {
  constexpr auto kRules = "nccl.rules", kAlgo = "nccl.algo", kProto = "nccl.proto";
  const auto asked = [&](const char* name) -> std::string {
    return is_from_environment(settings.source(name)) ? "auto" : settings.string(name);
  };
  const std::string algorithm = asked(kAlgo), protocol = asked(kProto);
  // The words of these settings are those of rules.
  const auto everywhere = [](const std::string& words) {
    return tuning_rules_from_string(words).value_or(std::vector<TuningRule>());
  };
  auto rules = everywhere(settings.string(kRules));
  const auto add = [&](const std::string& words) {
    for (const TuningRule& rule : everywhere(words)) rules.push_back(rule);
  };
  const std::string wire = protocol == "auto" ? "" : " " + protocol;
  if (algorithm != "auto") add("all_reduce " + algorithm + wire);
  if (protocol != "auto")
    for (const char* collective : {"all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter"})
      add(collective + wire);
  return rules;
}

/// A word of NCCL's stands for all names that begin so: TREE for TREE_LL, TREE_LL128 and TREE_SIMPLE, and
/// TREE_LL for two of them. With + between them all have to be true, with a comma one.
std::string selection_of(const TuningRule& rule) {
  constexpr std::array<std::string_view, nccl_abi::kAlgorithms> kNames{
      "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS_SIMPLE", "NVLSTREE", "PAT"};
  constexpr std::array kAll{"TREE", "RING"};  // those with more than one protocol
  const auto with_protocol = [&](const std::string& name) -> std::string {
    if (rule.no_ll128) return name + "+^" + name + "_LL128";
    if (!rule.protocol) return name;
    switch (*rule.protocol) {
      case WireProtocol::ll:
        return name + "_LL+^" + name + "_LL128";
      case WireProtocol::ll128:
        return name + "_LL128";
      case WireProtocol::simple:
        return name + "_SIMPLE";
    }
    return name;
  };
  if (rule.algorithm) {
    const std::string name(kNames.at(static_cast<std::size_t>(*rule.algorithm)));
    return rule.is_of_rings_or_trees() ? with_protocol(name) : name;
  }
  if (rule.no_ll128) return "^TREE_LL128+^RING_LL128";
  if (!rule.protocol) return "";
  std::string any;
  for (const char* name : kAll) any += (any.empty() ? "" : ",") + with_protocol(name);
  if (rule.protocol == WireProtocol::simple)
    for (const Algorithm other : {Algorithm::collnet_direct, Algorithm::collnet_chain, Algorithm::nvls,
                                  Algorithm::nvls_tree, Algorithm::pat})
      any += "," + std::string(kNames.at(static_cast<std::size_t>(other)));
  return any;
}

std::uint32_t version_of(const std::vector<TuningRule>& rules) {
  if (rules.empty()) return 0;
  std::string text;
  for (const TuningRule& rule : rules) text += to_string(rule) + ";";
  return std::max<std::uint32_t>(1, fnv1a(text));
}

Result<void> Tuning::propose(std::uint32_t version, const std::vector<TuningRule>& rules) {
  if (rules.size() > kMostRules)
    return fail(ErrorKind::usage, std::to_string(rules.size()) + " rules of tuning; allowed: at most " +
                                      std::to_string(kMostRules));
  for (const auto& rule : rules)
    if (auto good = check(rule, std::min(most_channels_, TuningRule::kMostChannels)); !good) return good;
  Table& free = tables_[static_cast<std::size_t>(1 - active_.load())];
  proposed_ = false;
  if (free.readers.load() != 0)
    return fail(ErrorKind::refused, "a collective is still being launched by the rules of before; try again");
  free.version = version;
  free.count = rules.size();
  std::copy(rules.begin(), rules.end(), free.rules.begin());
  proposed_ = true;
  return {};
}

bool Tuning::switch_to(std::uint32_t version) {
  const int other = 1 - active_.load();
  if (!proposed_.load() || tables_[static_cast<std::size_t>(other)].version != version) return false;
  proposed_ = false;
  active_ = other;
  unmet_state_ = 0;
  return true;
}

std::optional<Tuning::Unmet> Tuning::take_unmet() {
  int there = 2;
  if (!unmet_state_.compare_exchange_strong(there, 3)) return std::nullopt;
  return unmet_;
}

/// Announces itself first and looks again then: propose() looks at the readers after active_ was changed, so
/// that one of the two sees the other (all sequentially consistent).
Tuning::Table& Tuning::enter() {
  for (;;) {
    const int active = active_.load();
    Table& table = tables_[static_cast<std::size_t>(active)];
    ++table.readers;
    if (active_.load() == active) return table;
    --table.readers;
  }
}

const TuningRule* Tuning::fitting(const Table& table, int function, std::size_t bytes) {
  for (std::size_t i = 0; i < table.count; ++i) {
    const TuningRule& rule = table.rules[i];
    if (static_cast<int>(rule.collective) == function && bytes >= rule.min_bytes && bytes <= rule.max_bytes)
      return &rule;
  }
  return nullptr;
}

Tuning::Decision Tuning::decide(int function, std::size_t bytes, float* costs, int algorithms,
                                int protocols) {
  Table& table = enter();
  Decision decision;
  const TuningRule* rule = fitting(table, function, bytes);
  if (rule != nullptr) {
    decision = cheapest(costs, algorithms, protocols, [&](int a, int p) { return wanted(*rule, a, p); });
    if (decision.algorithm >= 0) {
      costs[decision.algorithm * protocols + decision.protocol] = 0;
      decision.channels = rule->channels;
      decision.by_rule = true;
    }
  }
  // What NCCL is going to choose by itself belongs to what has to be the same on all ranks.
  if (!decision.by_rule) decision = cheapest(costs, algorithms, protocols, [](int, int) { return true; });
  int first = 0;
  if (rule != nullptr && !decision.by_rule && decision.algorithm >= 0 &&
      unmet_state_.compare_exchange_strong(first, 1)) {
    unmet_ = {rule->collective, bytes, static_cast<Algorithm>(decision.algorithm),
              static_cast<WireProtocol>(decision.protocol)};
    unmet_state_ = 2;
  }
  decision.version = table.version;
  --table.readers;
  return decision;
}

std::optional<TuningRule> Tuning::rule_for(NcclCollective collective, std::size_t bytes) {
  Table& table = enter();
  const TuningRule* rule = fitting(table, static_cast<int>(collective), bytes);
  std::optional<TuningRule> copy;
  if (rule != nullptr) copy = *rule;
  --table.readers;
  return copy;
}

std::uint32_t Tuning::version() const {
  return tables_[static_cast<std::size_t>(active_.load())].version;
}

std::vector<TuningRule> Tuning::rules() const {
  const Table& table = tables_[static_cast<std::size_t>(active_.load())];
  return {table.rules.begin(), table.rules.begin() + static_cast<std::ptrdiff_t>(table.count)};
}

}  // namespace footplate
