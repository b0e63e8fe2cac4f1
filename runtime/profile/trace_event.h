#pragma once

#include <cstdint>
#include <string>

namespace footplate {

/// Something that took a while on one rank: a bar in a trace.
struct TraceEvent {
  std::string row;            ///< where it ran: "training", "collectives", "cuda:0 stream 7"
  std::string name;           ///< "aten::mm"
  std::int64_t start_ns = 0;  ///< since 1970, by this host's clock
  std::int64_t duration_ns = 0;
};

}  // namespace footplate
