#pragma once

#include <filesystem>
#include <string>

namespace footplate {

/// Keeps processes of a start that is over from writing into the run's folder. A host that was cut off, or a
/// rank that hung, may come back after the run has gone on without it: with another `footplate run`, which
/// gave it a new id, or with the next start of the same.
class RunFence {
 public:
  /// `id`: that the run had as this process was started; empty: nobody launched it, and it always holds.
  RunFence(std::filesystem::path run_directory, std::string id, int start)
      : directory_(std::move(run_directory)), id_(std::move(id)), start_(start) {}

  /// Whether this process's start is still the newest. Reads the disk; one that can't be read says nothing
  /// against it. Any thread.
  bool holds() const;

 private:
  std::filesystem::path directory_;
  std::string id_;
  int start_;
};

}  // namespace footplate
