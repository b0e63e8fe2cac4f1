#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "run_files/world_terms.h"

namespace footplate {

/// Keeps processes of a start that is over from writing into the run's folder. A host that was cut off, or a
/// rank that hung, may come back after the run has gone on without it: with another `footplate run`, which
/// gave it a new id, with the next start of the same, or with those ranks that could reach each other.
class RunFence {
 public:
  /// `id`: that the run had as this process was started; empty: nobody launched it, and it always holds.
  /// `origin`: of this rank; it may be one that no other has, where terms aren't claimed.
  RunFence(std::filesystem::path run_directory, std::string id, int start, int origin)
      : directory_(std::move(run_directory)),
        id_(std::move(id)),
        start_(start),
        origin_(origin),
        terms_(directory_, start) {}

  /// Whether this process's start is still the newest. Reads the disk; one that can't be read says nothing
  /// against it. Any thread.
  bool holds() const;
  /// Whether another `footplate run` has gone on with the run, under an id of its own. Any thread.
  bool is_taken_over() const;

  /// For a new world of ranks, by its rank 0, before it does anything (WorldTerms).
  Claim claim(const WorldMembers& world) const {
    return holds() ? terms_.claim(origin_, world) : Claim::left_out;
  }

 private:
  std::filesystem::path directory_;
  std::string id_;
  int start_;
  int origin_;
  WorldTerms terms_;
};

}  // namespace footplate
