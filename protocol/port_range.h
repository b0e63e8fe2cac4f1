#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "protocol/result.h"

namespace footplate {

/// TCP and UDP ports that the ranks of several hosts may listen at.
struct PortRange {
  std::uint16_t first = 0, last = 0;  ///< both are in it
  int count() const { return last - first + 1; }
  std::string text() const { return std::to_string(first) + "-" + std::to_string(last); }
};

/// comm.ports, for the ranks of several hosts.
inline constexpr const char* kPortsVariable = "FOOTPLATE_PORTS";

/// What a rank listens at besides Open MPI's port: two bells, and one more while they are exchanged anew.
/// mpirun, or its daemon, takes three at most, and so does another one that looks whether hosts answer.
constexpr int ports_needed(int ranks_of_a_host) {
  return 3 * ranks_of_a_host + 6;
}

/// Of comm.ports, "20000-20063"; nothing: any port. Error (usage): it is no range, or has too few.
Result<std::optional<PortRange>> parse_ports(const std::string& text);

}  // namespace footplate
