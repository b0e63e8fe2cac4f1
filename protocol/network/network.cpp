#include "protocol/network/network.h"

#include <algorithm>
#include <utility>

#include "protocol/network/system_text.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

Interface read_interface(const fs::path& root, const std::string& name) {
  const fs::path folder = root / "sys/class/net" / name;
  Interface interface { .name = name, .state = "unknown" };
  if (const auto words = words_of(read_text(folder / "operstate")); !words.empty())
    interface.state = words[0];
  interface.mtu = static_cast<int>(number_in(folder / "mtu").value_or(0));
  interface.mbit_per_s = std::max<std::int64_t>(0, number_in(folder / "speed").value_or(0));
  return interface;
}

/// A port that is up ("4: ACTIVE") and whose link is InfiniBand.
bool has_active_infiniband(const fs::path& ports) {
  constexpr std::int64_t kActive = 4;
  for (const auto& port : names_in(ports)) {
    const auto link = words_of(read_text(ports / port / "link_layer"));
    if (number_in(ports / port / "state") == kActive && !link.empty() && link[0] == "InfiniBand") return true;
  }
  return false;
}

}  // namespace

std::vector<Route> parse_routes(std::string_view text) {
  constexpr std::size_t kFields = 8;  // Iface Destination Gateway Flags RefCnt Use Metric Mask
  constexpr std::int64_t kUp = 1;
  std::vector<Route> routes;
  for (const auto& line : lines_of(text)) {
    const auto words = words_of(line);
    if (words.size() < kFields || words[0] == "Iface" || words[0] == "lo") continue;
    if ((leading_number(words[3], 16).value_or(0) & kUp) == 0) continue;
    routes.push_back({words[0], words[1] == "00000000" && words[7] == "00000000",
                      static_cast<int>(leading_number(words[6]).value_or(0))});
  }
  return routes;
}

std::vector<Route> parse_ipv6_routes(std::string_view text) {
  constexpr std::size_t kFields =
      10;  // destination, length, source, length, next, metric, …, flags, interface
  constexpr std::int64_t kUp = 1;
  std::vector<Route> routes;
  for (const auto& line : lines_of(text)) {
    const auto words = words_of(line);
    if (words.size() < kFields || words[9] == "lo" || (leading_number(words[8], 16).value_or(0) & kUp) == 0)
      continue;
    const bool is_default = words[1] == "00" && words[0].find_first_not_of('0') == std::string::npos;
    routes.push_back({words[9], is_default, static_cast<int>(leading_number(words[5], 16).value_or(0))});
  }
  return routes;
}

NetworkReading read_network(const fs::path& root) {
  NetworkReading network;
  network.infiniband = names_in(root / "sys/class/infiniband");
  for (const auto& name : network.infiniband)
    if (has_active_infiniband(root / "sys/class/infiniband" / name / "ports"))
      network.active_infiniband.push_back(name);
  auto routes = parse_routes(read_text(root / "proc/net/route"));
  if (routes.empty()) routes = parse_ipv6_routes(read_text(root / "proc/net/ipv6_route"));
  if (routes.empty()) return network;
  const auto best = std::min_element(routes.begin(), routes.end(), [](const Route& a, const Route& b) {
    return std::pair(!a.is_default, a.metric) < std::pair(!b.is_default, b.metric);
  });
  network.interface = read_interface(root, best->interface);
  return network;
}

}  // namespace footplate
