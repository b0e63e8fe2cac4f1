#include "console/launch/start/networks.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>

#include "protocol/host_name.h"

namespace footplate {
namespace {

constexpr int kBits = 32;
constexpr std::uint16_t kAnyPort = 9;  ///< nothing is sent

std::uint32_t mask_of(int prefix) {
  return prefix == 0 ? 0 : ~std::uint32_t{0} << (kBits - prefix);
}

bool is_loopback(std::uint32_t address) {
  return address >> 24 == IN_LOOPBACKNET;
}

std::uint32_t ipv4_of(const sockaddr* address) {
  return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
}

std::string network_text(std::uint32_t address, int prefix) {
  const in_addr network{htonl(address & mask_of(prefix))};
  char text[INET_ADDRSTRLEN] = {};
  ::inet_ntop(AF_INET, &network, text, sizeof(text));
  return std::string(text) + "/" + std::to_string(prefix);
}

/// Of this machine, where packets to `to` leave it; 0: no route leads there.
std::uint32_t source_of(std::uint32_t to) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 0;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kAnyPort);
  address.sin_addr.s_addr = htonl(to);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  const bool known = ::connect(fd, generic, size) == 0 && ::getsockname(fd, generic, &size) == 0;
  ::close(fd);
  return known ? ipv4_of(generic) : 0;
}

const NetworkAddress* network_with(const std::vector<NetworkAddress>& own, std::uint32_t address) {
  const auto found = std::find_if(own.begin(), own.end(), [address](const NetworkAddress& one) {
    return are_in_one_network(one.address, address, one.prefix);
  });
  return found != own.end() ? &*found : nullptr;
}

bool has_address(const std::vector<NetworkAddress>& own, std::uint32_t address) {
  return std::any_of(own.begin(), own.end(),
                     [address](const NetworkAddress& one) { return one.address == address; });
}

Result<void> check_item(const std::string& item, const std::vector<NetworkAddress>& own) {
  if (item.find('/') != std::string::npos) {
    if (parse_network(item)) return {};
    return fail(ErrorKind::usage, "comm.network: '" + item + "' is no network; one is written 10.0.0.0/16");
  }
  std::string known;
  for (const NetworkAddress& one : own) {
    if (one.interface == item) return {};
    known += (known.empty() ? "" : ", ") + one.interface + " (" + network_text(one.address, one.prefix) + ")";
  }
  return fail(ErrorKind::usage, "comm.network: this machine has no interface '" + item + "'; it has " +
                                    (known.empty() ? "none" : known) +
                                    "; auto takes what the hosts' names lead to");
}

Result<std::string> checked(const std::string& list) {
  const auto own = own_addresses();
  for (std::size_t start = 0; start <= list.size();) {
    const auto end = std::min(list.find(',', start), list.size());
    if (auto good = check_item(list.substr(start, end - start), own); !good)
      return tl::unexpected(good.error());
    start = end + 1;
  }
  return list;
}

}  // namespace

std::uint32_t address_of(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* all = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &all) != 0) return 0;
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(all, ::freeaddrinfo);
  for (const addrinfo* one = all; one != nullptr; one = one->ai_next)
    if (const std::uint32_t address = ipv4_of(one->ai_addr); !is_loopback(address)) return address;
  return 0;
}

bool is_own_name(const std::string& host) {
  const std::string own = host_name();
  if (host == own || host == "localhost" || host == own.substr(0, own.find('.')) ||
      host.substr(0, host.find('.')) == own)
    return true;
  return has_address(own_addresses(), address_of(host));
}

std::string networks_to(const std::vector<std::uint32_t>& others, const std::vector<NetworkAddress>& own,
                        std::uint32_t (*route)(std::uint32_t to)) {
  std::set<std::string> networks;
  for (const std::uint32_t other : others) {
    const NetworkAddress* direct = network_with(own, other);
    if (direct == nullptr) {
      networks.insert(network_text(other, kBits));
      direct = network_with(own, route(other));
    }
    if (direct != nullptr) networks.insert(network_text(direct->address, direct->prefix));
  }
  std::string text;
  for (const std::string& network : networks) text += (text.empty() ? "" : ",") + network;
  return text;
}

Result<std::string> network_list(const std::string& setting, const std::vector<Host>& hosts) {
  if (setting != kAutoNetwork) return checked(setting);
  const auto own = own_addresses();
  std::vector<std::uint32_t> others;
  for (const Host& host : hosts) {
    const std::uint32_t address = address_of(host.name);
    if (address != 0 && !has_address(own, address)) others.push_back(address);
  }
  return networks_to(others, own, source_of);
}

std::vector<std::string> free_ports(const PortRange& ports, std::size_t wanted) {
  std::vector<std::string> free;
  for (int port = ports.last; port >= ports.first && free.size() < wanted; --port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) break;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
      free.push_back(std::to_string(port));
    ::close(fd);
  }
  return free;
}

}  // namespace footplate
