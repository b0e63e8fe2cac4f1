#include "runtime/cuda/tuning.h"

#include <algorithm>
#include <string_view>

#include "protocol/schema.h"

namespace footplate {
namespace {

constexpr std::array<std::string_view, 5> kCollectives{"broadcast", "reduce", "all_gather", "reduce_scatter",
                                                       "all_reduce"};
constexpr std::array<std::string_view, 7> kAlgorithmNames{
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
constexpr std::array<std::string_view, 3> kProtocolNames{"ll", "ll128", "simple"};
static_assert(kAlgorithmNames.size() == nccl_abi::kAlgorithms);
static_assert(kProtocolNames.size() == nccl_abi::kProtocols);

template <class Enum, std::size_t N>
Result<Enum> from(const std::array<std::string_view, N>& names, const char* what, std::string_view text) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<Enum>(found - names.begin());
  std::string list;
  for (const auto name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  const std::string near = nearest(text, {names.begin(), names.end()});
  return fail(ErrorKind::usage, std::string(what) + " can't be '" + excerpt(text) + "'; it is one of " +
                                    list + (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

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
         (!rule.protocol || static_cast<int>(*rule.protocol) == protocol);
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

std::string_view to_string(NcclCollective collective) {
  return kCollectives.at(static_cast<std::size_t>(collective));
}
std::string_view to_string(Algorithm algorithm) {
  return kAlgorithmNames.at(static_cast<std::size_t>(algorithm));
}
std::string_view to_string(WireProtocol protocol) {
  return kProtocolNames.at(static_cast<std::size_t>(protocol));
}

Result<NcclCollective> collective_from_string(std::string_view text) {
  return from<NcclCollective>(kCollectives, "collective", text);
}
Result<Algorithm> algorithm_from_string(std::string_view text) {
  return from<Algorithm>(kAlgorithmNames, "algo", text);
}
Result<WireProtocol> protocol_from_string(std::string_view text) {
  return from<WireProtocol>(kProtocolNames, "proto", text);
}

std::string to_string(const TuningRule& rule) {
  std::string text = std::string(to_string(rule.collective)) + " " + std::to_string(rule.min_bytes);
  text += rule.max_bytes == std::numeric_limits<std::size_t>::max()
              ? " bytes and more: "
              : " to " + std::to_string(rule.max_bytes) + " bytes: ";
  text += rule.algorithm ? to_string(*rule.algorithm) : "best algorithm";
  text += ", " + (rule.protocol ? std::string(to_string(*rule.protocol)) : "best protocol");
  if (rule.channels != 0) text += ", " + std::to_string(rule.channels) + " channels";
  return text;
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
  return true;
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
  if (const TuningRule* rule = fitting(table, function, bytes)) {
    decision = cheapest(costs, algorithms, protocols, [&](int a, int p) { return wanted(*rule, a, p); });
    if (decision.algorithm >= 0) {
      costs[decision.algorithm * protocols + decision.protocol] = 0;
      decision.channels = rule->channels;
      decision.by_rule = true;
    }
  }
  // What NCCL is going to choose by itself belongs to what has to be the same on all ranks.
  if (!decision.by_rule) decision = cheapest(costs, algorithms, protocols, [](int, int) { return true; });
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
