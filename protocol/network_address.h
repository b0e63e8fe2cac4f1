#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace footplate {

/// An IPv4 address of this machine.
struct NetworkAddress {
  std::string interface;      ///< "eth0"
  std::uint32_t address = 0;  ///< in the host's byte order
  int prefix = 32;            ///< bits that name the network
};

/// Those of interfaces that are up, without the loopback.
std::vector<NetworkAddress> own_addresses();

/// Of "10.77.0.0/24".
struct Network {
  std::uint32_t address = 0;  ///< in the host's byte order
  int prefix = 0;
};
/// Nothing: it is no IPv4 network.
std::optional<Network> parse_network(const std::string& text);

/// Whether both are in a network whose name has `prefix` bits.
bool are_in_one_network(std::uint32_t a, std::uint32_t b, int prefix);

/// Those of `own` that are in one of the networks and interfaces of a list, "10.77.0.0/24,eth1". Open MPI has
/// such a list in btl_tcp_if_include.
std::vector<NetworkAddress> addresses_in(const std::string& list, const std::vector<NetworkAddress>& own);

}  // namespace footplate
