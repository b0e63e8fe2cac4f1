#pragma once

#include <cstdint>
#include <string>

#include "protocol/json.h"

namespace footplate {

/// Where a rank is on its way to the first step. It appends one line of JSON for each place to a file in the
/// run's private folder (`$FOOTPLATE_DOORBELL_DIR`), from which whoever started it tells which rank is
/// missing.
struct Arrival {
  int rank = 0;
  std::int64_t pid = 0;
  std::string host;
  int stage = 0;         ///< counts the places; the same number is the same place on every rank
  bool waits = false;    ///< for the other ranks
  bool has_met = false;  ///< all ranks once: MPI is up
  std::string place;     ///< "before MPI starts"

  Json to_json() const;
  /// Errors: a field is missing or of another type.
  static Result<Arrival> from_json(const Json& json);
};

/// The name of a rank's file.
std::string arrival_file(int rank);

}  // namespace footplate
