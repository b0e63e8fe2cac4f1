#include "runtime/cuda/tuning.h"

#include <algorithm>
#include <string_view>

#include "protocol/variables.h"

namespace footplate {
namespace {

static_assert(static_cast<int>(Algorithm::pat) + 1 == nccl_abi::kAlgorithms);
static_assert(static_cast<int>(WireProtocol::simple) + 1 == nccl_abi::kProtocols);

/// The number of channels is taken as it is said, and only rings and trees have as many as the communicator.
bool has_all_channels(const std::optional<Algorithm>& algorithm) {
  return algorithm == Algorithm::ring || algorithm == Algorithm::tree;
}

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
  if (rule.channels > 0 && !has_all_channels(rule.algorithm))
    return wrong("channels need an algorithm, ring or tree: others have channels of their own");
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

std::uint32_t version_of(const std::vector<TuningRule>& rules) {
  if (rules.empty()) return 0;
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const TuningRule& rule : rules)
    for (const char c : to_string(rule) + ";") hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash == 0 ? 1 : hash;
}

Result<void> Tuning::propose(std::uint32_t version, const std::vector<TuningRule>& rules) {
  if (rules.size() > kMostRules)
    return fail(ErrorKind::usage, std::to_string(rules.size()) + " rules of tuning; allowed: at most " +
                                      std::to_string(kMostRules));
  for (const auto& rule : rules)
    if (auto good = check(rule, std::min(most_channels_, kMostChannels)); !good) return good;
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

std::uint32_t Tuning::version() const {
  return tables_[static_cast<std::size_t>(active_.load())].version;
}

std::vector<TuningRule> Tuning::rules() const {
  const Table& table = tables_[static_cast<std::size_t>(active_.load())];
  return {table.rules.begin(), table.rules.begin() + static_cast<std::ptrdiff_t>(table.count)};
}

}  // namespace footplate
