#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace footplate {

/// What a user has typed into `footplate attach`, of all runs: one JSON string a line, so that entries of
/// several lines stay whole. Several clients may append at the same time. Best effort: without a home, or on
/// a full disk, there is only what was typed since the start.
class InputHistory {
 public:
  /// In `folder`, by default the user's state folder (state_folder()).
  explicit InputHistory(const std::filesystem::path& folder);

  /// Oldest first, at most kMostEntries.
  const std::vector<std::string>& entries() const { return entries_; }

  /// Adds an entry and appends it to the file. Skipped: blank ones, ones that start with a space, and a
  /// repetition of the last one. Whether it was added.
  bool add(const std::string& entry);

  static constexpr std::size_t kMostEntries = 1000;

 private:
  void load();
  void shorten() const;

  std::filesystem::path path_;
  std::vector<std::string> entries_;
};

}  // namespace footplate
