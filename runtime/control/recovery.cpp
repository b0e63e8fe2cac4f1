#include "runtime/control/recovery.h"

#include <algorithm>

#include "runtime/watch/messages.h"

namespace footplate {
namespace {

constexpr std::int64_t kUndefined = -1;

std::uint64_t largest(const std::map<int, Json>& standing, const char* field) {
  std::uint64_t most = 0;
  for (const auto& [rank, said] : standing) most = std::max(most, said.at(field).get<std::uint64_t>());
  return most;
}

bool any(const std::map<int, Json>& standing, const char* field) {
  return std::any_of(standing.begin(), standing.end(),
                     [&](const auto& entry) { return entry.second.at(field) == true; });
}

/// A periodic save has none: where some ranks are at that one, others already at an order's at the same step,
/// the order's is made.
std::string tag_of_save(const std::map<int, Json>& standing) {
  for (const auto& [rank, said] : standing)
    if (const std::string tag = said.at("tag"); said.at("save") == true && !tag.empty()) return tag;
  return "";
}

/// The last order that was refused as it was applied, and why, as whoever knows it has it.
Json last_refused(const std::map<int, Json>& standing) {
  Json last = {{"refused", 0}, {"refusal", ""}};
  for (const auto& [rank, said] : standing)
    if (const auto refused = said.value("refused", std::uint64_t{0}); refused > last["refused"])
      last = {{"refused", refused}, {"refusal", said.value("refusal", "")}};
  return last;
}

}  // namespace

void Recovery::add(int source, const Json& standing) {
  if (standing.at("generation") == generation_) standing_[source] = standing;
}

std::vector<int> Recovery::awaited() const {
  std::vector<int> awaited;
  for (int rank = 0; rank < world_size_; ++rank)
    if (!standing_.contains(rank)) awaited.push_back(rank);
  return awaited;
}

std::optional<Json> Recovery::verdict() const {
  if (static_cast<int>(standing_.size()) < world_size_) return std::nullopt;
  std::int64_t step = kUndefined;
  int source = 0;
  for (const auto& [rank, said] : standing_) {
    const std::int64_t at = said.at("step");
    if (at > step) source = rank;
    step = std::max(step, at);
  }
  Json verdict = {{"t", message::kRejoin}, {"generation", generation_}};
  if (step == kUndefined) {
    verdict["impossible"] = "no rank is left whose state is whole";
    return verdict;
  }
  Json behind = Json::array();
  Json newest;
  for (const auto& [rank, said] : standing_) {
    if (said.at("step") != step) behind.push_back(rank);
    const Json& commit = said.at("commit");
    if (!commit.is_null() && (newest.is_null() || commit.at("ticket") > newest.at("ticket"))) newest = commit;
  }
  const Json& leader = standing_.at(source);
  verdict.update({{"step", step},
                  {"source", source},
                  {"behind", behind},
                  {"commit", newest},
                  {"paused", leader.at("paused")},
                  {"finished", any(standing_, "finished")},
                  {"save", any(standing_, "save")},
                  {"tag", tag_of_save(standing_)},
                  {"sequence", largest(standing_, "sequence")},
                  {"commits", largest(standing_, "commits")},
                  {"begun", largest(standing_, "begun")},
                  {"ticket", largest(standing_, "ticket")},
                  {"order", largest(standing_, "order")}});
  verdict.update(last_refused(standing_));
  return verdict;
}

}  // namespace footplate
