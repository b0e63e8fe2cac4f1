#include "protocol/network_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <memory>

namespace footplate {
namespace {

constexpr int kBits = 32;

std::uint32_t ipv4_of(const sockaddr* address) {
  return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
}

bool is_of(const NetworkAddress& one, const std::string& item) {
  if (item.find('/') == std::string::npos) return one.interface == item;
  const auto network = parse_network(item);
  return network && are_in_one_network(one.address, network->address, network->prefix);
}

}  // namespace

std::vector<NetworkAddress> own_addresses() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(all, ::freeifaddrs);
  std::vector<NetworkAddress> found;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET || one->ifa_netmask == nullptr)
      continue;
    if ((one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0) continue;
    found.push_back({one->ifa_name, ipv4_of(one->ifa_addr), std::popcount(ipv4_of(one->ifa_netmask))});
  }
  return found;
}

std::optional<Network> parse_network(const std::string& text) {
  const auto slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  in_addr address{};
  int prefix = -1;
  const char* end = text.data() + text.size();
  const bool is_network = ::inet_pton(AF_INET, text.substr(0, slash).c_str(), &address) == 1 &&
                          std::from_chars(text.data() + slash + 1, end, prefix).ptr == end && prefix >= 0 &&
                          prefix <= kBits;
  return is_network ? std::optional(Network{ntohl(address.s_addr), prefix}) : std::nullopt;
}

bool are_in_one_network(std::uint32_t a, std::uint32_t b, int prefix) {
  const std::uint32_t mask = prefix == 0 ? 0 : ~std::uint32_t{0} << (kBits - prefix);
  return (a & mask) == (b & mask);
}

std::vector<NetworkAddress> addresses_in(const std::string& list, const std::vector<NetworkAddress>& own) {
  std::vector<NetworkAddress> found;
  for (const NetworkAddress& one : own)
    for (std::size_t start = 0; start <= list.size();) {
      const auto end = std::min(list.find(',', start), list.size());
      if (is_of(one, list.substr(start, end - start))) {
        found.push_back(one);
        break;
      }
      start = end + 1;
    }
  return found;
}

}  // namespace footplate
