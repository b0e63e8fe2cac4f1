#include "console/report/lineage.h"

#include <algorithm>
#include <utility>

#include "run_files/file_names.h"
#include "run_files/journaled_orders.h"

namespace footplate::report {
namespace {

/// The folder of a checkpoint's branch has the branch's name.
std::string branch_of_checkpoint(const std::string& path) {
  return std::filesystem::path(path).parent_path().filename().string();
}

}  // namespace

std::size_t Lineage::parent_of(const StartRecord& start) const {
  const std::string branch = branch_of_checkpoint(start.resumed);
  for (std::size_t i = starts_.size(); i > 0; --i) {
    const StartRecord& earlier = starts_[i - 1].record;
    if (!start.resumed.empty() && earlier.branch == branch && earlier.step <= start.step) return i - 1;
  }
  return starts_.size();
}

void Lineage::start(const StartRecord& start) {
  starts_.push_back({start, parent_of(start)});
}

std::size_t Lineage::place_at(const std::string& time) const {
  std::size_t place = 0;
  for (std::size_t i = 0; i < starts_.size(); ++i)
    if (starts_[i].record.time <= time) place = i;
  return place;
}

std::string Lineage::branch_at(const std::string& time) const {
  return starts_.empty() ? "" : starts_[place_at(time)].record.branch;
}

void Lineage::order(const Applied& applied, const std::string& time) {
  if (starts_.empty()) return;
  auto& moves = starts_[place_at(time)].moves;
  for (const Moved& moved : applied.moved)
    moves.emplace_back(applied.id, SettingMove{moved.name, moved.before, moved.after, applied.step});
}

RecordedSettings Lineage::inherited(std::size_t place) const {
  const Begun& start = starts_[place];
  if (start.parent == place) return read_recorded_settings(config_path(directory_, start.record.start));
  RecordedSettings settings = starts_[start.parent].settings;
  // Also what other starts of that branch have moved until then.
  std::vector<AppliedAt> applied;
  std::vector<const SettingMove*> moves;
  for (std::size_t i = start.parent; i < place; ++i) {
    if (starts_[i].record.branch != starts_[start.parent].record.branch) continue;
    for (const auto& [order, move] : starts_[i].moves) {
      applied.push_back({order, move.step});
      moves.push_back(&move);
    }
  }
  const std::size_t held = held_by_checkpoint(applied, start.record.journal, start.record.step);
  for (std::size_t i = 0; i < held; ++i)
    settings[moves[i]->name] = {moves[i]->after, "order " + std::to_string(applied[i].id)};
  return settings;
}

void Lineage::settle() {
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    Begun& start = starts_[i];
    start.settings = inherited(i);
    const std::int64_t step = start.record.loaded ? -1 : start.record.step;
    for (const auto& [name, given] :
         settings_of_values(start.record.given, "start " + std::to_string(start.record.start))) {
      const auto found = start.settings.find(name);
      if (found != start.settings.end() && shown(found->second.value) != shown(given.value))
        start.given.push_back({name, found->second.value, given.value, step});
      start.settings[name] = given;
    }
  }
}

std::vector<SettingMove> Lineage::given(int number) const {
  const auto found = std::find_if(starts_.begin(), starts_.end(),
                                  [&](const Begun& start) { return start.record.start == number; });
  return found == starts_.end() ? std::vector<SettingMove>() : found->given;
}

std::vector<Branch> Lineage::branches() const {
  std::vector<Branch> all;
  for (std::size_t i = 0; i < starts_.size(); ++i) {
    const Begun& start = starts_[i];
    auto found = std::find_if(all.begin(), all.end(),
                              [&](const Branch& branch) { return branch.name == start.record.branch; });
    if (found == all.end()) {
      const std::string parent = start.parent == i ? "" : starts_[start.parent].record.branch;
      found = all.insert(all.end(), Branch{start.record.branch, parent, start.record.step});
    }
    found->moves.insert(found->moves.end(), start.given.begin(), start.given.end());
    for (const auto& [order, move] : start.moves) found->moves.push_back(move);
  }
  return all;
}

RecordedSettings Lineage::configured() const {
  return starts_.empty() ? read_recorded_settings(config_path(directory_, 1))
                         : read_recorded_settings(config_path(directory_, starts_.front().record.start));
}

RecordedSettings Lineage::now() const {
  if (starts_.empty()) return configured();
  RecordedSettings settings = starts_.back().settings;
  for (const auto& [order, move] : starts_.back().moves)
    settings[move.name] = {move.after, "order " + std::to_string(order)};
  return settings;
}

}  // namespace footplate::report
