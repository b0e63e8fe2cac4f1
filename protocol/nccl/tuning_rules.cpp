#include "protocol/nccl/tuning_rules.h"

#include <algorithm>
#include <array>

#include "protocol/schema.h"
#include "protocol/value.h"

namespace footplate {
namespace {

constexpr std::array<std::string_view, 5> kCollectiveNames{"broadcast", "reduce", "all_gather",
                                                           "reduce_scatter", "all_reduce"};
constexpr std::array<std::string_view, 7> kAlgorithmNames{
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
constexpr std::array<std::string_view, 3> kProtocolNames{"ll", "ll128", "simple"};
constexpr std::string_view kNoLl128 = "no_ll128";
constexpr std::string_view kSizes = "..";

template <class Enum, std::size_t N>
std::optional<Enum> named(const std::array<std::string_view, N>& names, std::string_view word) {
  const auto found = std::find(names.begin(), names.end(), word);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

template <std::size_t N>
std::string list(const std::array<std::string_view, N>& names) {
  std::string text;
  for (const auto name : names) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

std::vector<std::string> words_of(std::string_view text) {
  constexpr std::string_view kBetween = " \t\n,:";
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = text.find_first_not_of(kBetween, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBetween, at), text.size());
    words.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<std::size_t> whole_number(const std::string& word) {
  if (word.empty() || word.size() > 18 ||
      !std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  return std::stoull(word);
}

/// "1MiB" or "4096".
std::optional<std::size_t> bytes_of(const std::string& word) {
  if (const auto number = whole_number(word)) return number;
  const auto value = value_from_json(Json(word), Type::integer, "bytes");
  if (!value || std::get<std::int64_t>(*value) < 0) return std::nullopt;
  return static_cast<std::size_t>(std::get<std::int64_t>(*value));
}

std::string rule_size(std::size_t bytes) {
  constexpr std::array<std::pair<std::size_t, std::string_view>, 3> kUnits{
      {{std::size_t{1} << 30, "GiB"}, {std::size_t{1} << 20, "MiB"}, {std::size_t{1} << 10, "KiB"}}};
  for (const auto& [unit, name] : kUnits)
    if (bytes >= unit && bytes % unit == 0) return std::to_string(bytes / unit) + std::string(name);
  return std::to_string(bytes);
}

/// One rule's words, one after the other.
class RuleReader {
 public:
  explicit RuleReader(std::vector<std::string> words) : words_(std::move(words)) {}

  Result<TuningRule> read() {
    while (at_ < words_.size())
      if (auto taken = take(words_[at_++]); !taken) return tl::unexpected(taken.error());
    if (!rule_.algorithm && !rule_.protocol && !rule_.no_ll128 && rule_.channels == 0)
      return wrong("says nothing to do: name an algorithm, a protocol or channels");
    if (rule_.channels > 0 && !rule_.is_of_rings_or_trees()) return wrong(TuningRule::kChannelsNeedThese);
    return rule_;
  }

 private:
  Result<void> take(const std::string& word) {
    if (word.find(kSizes) != std::string::npos)
      return once(sized_, "sizes").and_then([&] { return sizes(word); });
    if (const auto collective = named<NcclCollective>(kCollectiveNames, word)) {
      rule_.collective = *collective;
      return once(collective_, "a collective");
    }
    if (const auto algorithm = named<Algorithm>(kAlgorithmNames, word)) {
      rule_.algorithm = algorithm;
      return once(algorithm_, "an algorithm");
    }
    if (const auto protocol = named<WireProtocol>(kProtocolNames, word)) {
      rule_.protocol = protocol;
      return once(protocol_, "a protocol");
    }
    if (word == kNoLl128) {
      rule_.no_ll128 = true;
      return once(protocol_, "a protocol");
    }
    if (const auto number = whole_number(word))
      return once(channels_, "channels").and_then([&] { return channels(*number); });
    return unknown(word);
  }

  Result<void> sizes(const std::string& word) {
    const std::size_t dots = word.find(kSizes);
    const std::string from = word.substr(0, dots), to = word.substr(dots + kSizes.size());
    const auto least = from.empty() ? std::size_t{0} : bytes_of(from);
    const auto most = to.empty() ? TuningRule::kUnbounded : bytes_of(to);
    if (!least || !most)
      return wrong("'" + excerpt(word) + "' are no sizes; as in ..1MiB, 1MiB..64MiB, 64MiB.., 0..4096");
    if (*least > *most) return wrong("'" + excerpt(word) + "' begins above its end");
    rule_.min_bytes = *least;
    rule_.max_bytes = *most;
    return {};
  }

  Result<void> channels(std::size_t number) {
    constexpr std::size_t kMost = TuningRule::kMostChannels;
    if (at_ < words_.size() && (words_[at_] == "channels" || words_[at_] == "channel")) {
      ++at_;
    } else {
      return wrong("'" + std::to_string(number) +
                   "' alone; sizes are as in ..1MiB, channels as in 4 channels");
    }
    if (number < 1 || number > kMost) return wrong("channels can be 1 to " + std::to_string(kMost));
    rule_.channels = static_cast<int>(number);
    return {};
  }

  Result<void> once(bool& seen, const char* what) const {
    if (std::exchange(seen, true)) return wrong(std::string("names ") + what + " twice");
    return {};
  }

  Result<void> unknown(const std::string& word) const {
    std::vector<std::string> known{std::string(kNoLl128), "channels"};
    known.insert(known.end(), kCollectiveNames.begin(), kCollectiveNames.end());
    known.insert(known.end(), kAlgorithmNames.begin(), kAlgorithmNames.end());
    known.insert(known.end(), kProtocolNames.begin(), kProtocolNames.end());
    const std::string near = nearest(word, known);
    return wrong("'" + excerpt(word) + "' is no size (..1MiB), algorithm (" + list(kAlgorithmNames) +
                 "), protocol (" + list(kProtocolNames) + ", no_ll128), collective (" +
                 list(kCollectiveNames) + ") or number of channels" +
                 (near.empty() ? "" : "; did you mean '" + near + "'?"));
  }

  tl::unexpected<Error> wrong(const std::string& why) const { return fail(ErrorKind::usage, why); }

  const std::vector<std::string> words_;
  std::size_t at_ = 0;
  TuningRule rule_;
  bool sized_ = false, collective_ = false, algorithm_ = false, protocol_ = false, channels_ = false;
};

}  // namespace

std::string_view to_string(NcclCollective collective) {
  return kCollectiveNames.at(static_cast<std::size_t>(collective));
}
std::string_view to_string(Algorithm algorithm) {
  return kAlgorithmNames.at(static_cast<std::size_t>(algorithm));
}
std::string_view to_string(WireProtocol protocol) {
  return kProtocolNames.at(static_cast<std::size_t>(protocol));
}

std::string to_string(const TuningRule& rule) {
  std::string text(to_string(rule.collective));
  if (rule.min_bytes > 0 || rule.max_bytes != TuningRule::kUnbounded)
    text += " " + (rule.min_bytes > 0 ? rule_size(rule.min_bytes) : "") + std::string(kSizes) +
            (rule.max_bytes != TuningRule::kUnbounded ? rule_size(rule.max_bytes) : "");
  if (rule.algorithm) text += " " + std::string(to_string(*rule.algorithm));
  if (rule.protocol) text += " " + std::string(to_string(*rule.protocol));
  if (rule.no_ll128) text += " " + std::string(kNoLl128);
  if (rule.channels > 0) text += " " + std::to_string(rule.channels) + " channels";
  return text;
}

Result<std::vector<TuningRule>> tuning_rules_from_string(std::string_view text) {
  std::vector<TuningRule> rules;
  int number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(';'), text.size());
    std::string_view one = text.substr(0, end);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    auto words = words_of(one);
    if (words.empty()) continue;  // a ';' at the end
    auto rule = RuleReader(std::move(words)).read();
    if (!rule)
      return fail(ErrorKind::usage,
                  "rule " + std::to_string(number) + " (" + excerpt(one) + "): " + rule.error().message);
    rules.push_back(*rule);
  }
  return rules;
}

}  // namespace footplate
