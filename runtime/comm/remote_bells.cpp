#include "runtime/comm/remote_bells.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace footplate {
namespace {

constexpr int kMostAtOnce = 256;  ///< a flood of strangers' datagrams doesn't hold the thread

bool has(const BellCard& card, std::uint32_t address) {
  const auto* end = card.addresses.begin() + card.count;
  return std::find(card.addresses.begin(), end, address) != end;
}

/// To the first port that is free; 0: any.
bool bind_in(int fd, sockaddr_in address, const PortRange& ports) {
  for (int port = ports.first; port <= ports.last; ++port) {
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return true;
    if (errno != EADDRINUSE) return false;
  }
  return false;
}

}  // namespace

Result<std::unique_ptr<RemoteBells>> RemoteBells::install(int origin,
                                                          const std::vector<std::uint32_t>& addresses,
                                                          const std::optional<PortRange>& ports) {
  const auto failed = [](const char* what) {
    return fail(ErrorKind::failed, std::string(what) + ": " + std::strerror(errno));
  };
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return failed("socket");
  std::unique_ptr<RemoteBells> bells(new RemoteBells(origin, fd));
  sockaddr_in own{};
  own.sin_family = AF_INET;
  socklen_t size = sizeof(own);
  if (!bind_in(fd, own, ports.value_or(PortRange{0, 0}))) return failed("bind");
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) != 0) return failed("getsockname");
  BellCard& card = bells->card_;
  if (::getrandom(&card.token, sizeof(card.token), 0) != static_cast<ssize_t>(sizeof(card.token)))
    return failed("getrandom");
  card.port = ntohs(own.sin_port);
  card.count = static_cast<std::uint32_t>(std::min(addresses.size(), card.addresses.size()));
  std::copy_n(addresses.begin(), card.count, card.addresses.begin());
  return bells;
}

RemoteBells::~RemoteBells() {
  ::close(fd_);
}

void RemoteBells::know(int origin, const BellCard& card) {
  if (card.port != 0 && card.count <= card.addresses.size()) known_[origin] = card;
}

std::set<int> RemoteBells::take() {
  std::set<int> heard;
  for (int i = 0; i < kMostAtOnce; ++i) {
    Ring ring;
    sockaddr_in from{};
    socklen_t size = sizeof(from);
    const ssize_t got =
        ::recvfrom(fd_, &ring, sizeof(ring), MSG_DONTWAIT, reinterpret_cast<sockaddr*>(&from), &size);
    if (got < 0) break;
    if (got != static_cast<ssize_t>(sizeof(ring)) || ring.token != card_.token) continue;
    const auto card = known_.find(ring.origin);
    if (card == known_.end()) continue;
    if (has(card->second, ntohl(from.sin_addr.s_addr))) proven_[ring.origin] = ntohl(from.sin_addr.s_addr);
    heard.insert(ring.origin);
    heard_.insert(ring.origin);
    if (static_cast<Kind>(ring.kind) == Kind::question) send(ring.origin, Kind::ring);
  }
  return heard;
}

/// To the address that has answered; before one has, to all.
void RemoteBells::send(int origin, Kind kind) {
  const auto card = known_.find(origin);
  if (card == known_.end()) return;
  const auto& [token, port, count, addresses] = card->second;
  const Ring ring{token, origin_, static_cast<std::uint32_t>(kind)};
  if (const auto proven = proven_.find(origin); proven != proven_.end())
    return send_to(proven->second, port, ring);
  for (std::uint32_t i = 0; i < count; ++i) send_to(addresses[i], port, ring);
}

void RemoteBells::send_to(std::uint32_t address, std::uint32_t port, const Ring& ring) const {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(address);
  ::sendto(fd_, &ring, sizeof(ring), MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to),
           sizeof(to));
}

}  // namespace footplate
