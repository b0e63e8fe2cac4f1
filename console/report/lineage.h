#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "console/report/run_history.h"
#include "protocol/order.h"

namespace footplate::report {

/// Which settings were in force in which branch of a run: from the starts, then from the orders that were
/// applied, in the order in which all that happened.
class Lineage {
 public:
  explicit Lineage(std::filesystem::path run_directory) : directory_(std::move(run_directory)) {}

  void start(const StartRecord& start);
  /// An applied order. `time` as its event has it.
  void order(const Applied& applied, const std::string& time);

  /// The branch that was trained at that time; "" where that isn't known.
  std::string branch_at(const std::string& time) const;

  /// Once all has been told; before what follows.
  void settle();

  /// Name, parent, first step and moves of each branch.
  std::vector<Branch> branches() const;
  /// What start `number` was given otherwise than the checkpoint that it went on from.
  std::vector<SettingMove> given(int number) const;
  RecordedSettings configured() const;
  RecordedSettings now() const;

 private:
  struct Begun {
    StartRecord record;
    std::size_t parent = 0;  ///< place of the start that its checkpoint is of; its own: none that is known
    std::vector<std::pair<std::uint64_t, SettingMove>> moves = {};  ///< with their orders
    RecordedSettings settings = {};                                 ///< at its beginning
    std::vector<SettingMove> given = {};
  };

  std::size_t parent_of(const StartRecord& start) const;
  std::size_t place_at(const std::string& time) const;
  /// What the checkpoint had that a start went on from.
  RecordedSettings inherited(std::size_t place) const;

  std::filesystem::path directory_;
  std::vector<Begun> starts_;
};

}  // namespace footplate::report
