#pragma once

#include <filesystem>
#include <string>

#include "protocol/arrival.h"

namespace footplate {

/// Tells whoever started this rank how far it has come (protocol/arrival.h). Every rank calls these in the
/// same order, so that equal stages are equal places. What can't be written is left out: a start that goes
/// well needs none of it. One thread.
class ArrivalNote {
 public:
  /// `folder`: the run's private one; empty: nobody is told. `rank` as the launcher gave it.
  ArrivalNote(const std::filesystem::path& folder, int rank);
  ~ArrivalNote();
  ArrivalNote(const ArrivalNote&) = delete;
  ArrivalNote& operator=(const ArrivalNote&) = delete;

  /// At work, without the others.
  void is_at(const std::string& place) { note(place, false); }
  /// In something that ends when all ranks are there.
  void waits_in(const std::string& place) { note(place, true); }
  /// All ranks have met: from here on only a wait is bounded.
  void has_met() { arrival_.has_met = true; }

 private:
  void note(const std::string& place, bool waits);

  Arrival arrival_;
  int file_ = -1;
};

}  // namespace footplate
