#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "console/launch/start/host_list.h"
#include "protocol/network_address.h"
#include "protocol/port_range.h"
#include "protocol/result.h"

namespace footplate {

// The networks over which the ranks of several hosts speak. Left to itself Open MPI tries every interface of
// a host: one that leads nowhere, as Docker's bridge with the same address on each host, makes a start hang.

/// The first IPv4 address of the name that leads to another machine; 0: it has none, or isn't known here.
std::uint32_t address_of(const std::string& host);

/// Whether the name is this machine's: its own, or one that leads to an address of it.
bool is_own_name(const std::string& host);

/// "10.77.0.0/24,10.78.0.5/32": the networks of `own` that have one of `others`. An address in none of them
/// is reached through a router: it is listed itself, with `route`'s network, from which packets to it leave.
/// Empty: there are no others.
std::string networks_to(const std::vector<std::uint32_t>& others, const std::vector<NetworkAddress>& own,
                        std::uint32_t (*route)(std::uint32_t to));

/// What Open MPI is told for `comm.network`: "auto" stands for networks_to() the hosts' names; a list of
/// networks and interfaces for itself. Empty: nothing, where no name leads to an address here. Errors
/// (usage): an interface that this machine hasn't, with those that it has; a network that is none.
Result<std::string> network_list(const std::string& setting, const std::vector<Host>& hosts);

/// The last ones of `ports` at which nothing of this machine listens, as many as `wanted` where there are,
/// for Open MPI: it takes the first ones.
std::vector<std::string> free_ports(const PortRange& ports, std::size_t wanted);

}  // namespace footplate
