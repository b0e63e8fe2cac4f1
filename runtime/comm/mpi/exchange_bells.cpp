#include "runtime/comm/mpi/exchange_bells.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <vector>

#include "protocol/network_address.h"

namespace footplate {
namespace {

/// In the networks that Open MPI was told of; where it wasn't, all.
std::vector<std::uint32_t> addresses() {
  const char* networks = std::getenv("OMPI_MCA_btl_tcp_if_include");
  std::vector<NetworkAddress> own = own_addresses();
  if (networks != nullptr) own = addresses_in(networks, own);
  std::vector<std::uint32_t> found;
  for (const NetworkAddress& one : own) found.push_back(one.address);
  return found;
}

std::optional<PortRange> ports() {
  const char* given = std::getenv(kPortsVariable);
  const auto range = parse_ports(given == nullptr ? "" : given);
  return range ? *range : std::nullopt;
}

}  // namespace

bool has_several_hosts(const MpiSession& session) {
  const auto& hosts = session.hosts();
  return std::adjacent_find(hosts.begin(), hosts.end(), std::not_equal_to<>()) != hosts.end();
}

std::unique_ptr<RemoteBells> exchange_bells(MpiSession& session) {
  const auto& origins = session.members().origins;
  std::unique_ptr<RemoteBells> bells;
  if (auto made =
          RemoteBells::install(origins[static_cast<std::size_t>(session.rank())], addresses(), ports()))
    bells = *std::move(made);
  const BellCard mine = bells ? bells->card() : BellCard{};
  std::vector<BellCard> all(origins.size());
  constexpr int kSize = sizeof(BellCard);
  const int code = MPI_Allgather(&mine, kSize, MPI_BYTE, all.data(), kSize, MPI_BYTE, session.control());
  if (code != MPI_SUCCESS) {
    session.tells_loss(code);
    return nullptr;
  }
  for (std::size_t rank = 0; bells && rank < all.size(); ++rank) bells->know(origins[rank], all[rank]);
  return bells;
}

}  // namespace footplate
