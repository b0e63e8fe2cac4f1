#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace footplate {

// Which interface leads to other hosts, and which adapters there are: what the system says, below a `root`
// ("/" for the real one). Nothing is sent.

/// A line of the routing table.
struct Route {
  std::string interface;
  bool is_default = false;  ///< to everywhere
  int metric = 0;           ///< the lowest one is taken
};
std::vector<Route> parse_routes(std::string_view text);       ///< /proc/net/route
std::vector<Route> parse_ipv6_routes(std::string_view text);  ///< /proc/net/ipv6_route

/// The interface that leads to other hosts.
struct Interface {
  std::string name;
  std::string state;            ///< "up", "down", "unknown": as the driver says
  int mtu = 0;                  ///< bytes
  std::int64_t mbit_per_s = 0;  ///< 0: the driver doesn't say
};
struct NetworkReading {
  std::optional<Interface> interface;   ///< of the default route, else of the first one; nothing: no route
  std::vector<std::string> infiniband;  ///< adapters, of RoCE too: "mlx5_0"
  /// Those of them that have a port which is up and whose link is InfiniBand, not Ethernet (RoCE).
  std::vector<std::string> active_infiniband = {};
};
/// From the routing table alone: no packet is sent, no name is looked up.
NetworkReading read_network(const std::filesystem::path& root);

}  // namespace footplate
