#include "console/launch/start/networks.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace footplate {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t ip(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  return a << 24 | b << 16 | c << 8 | d;
}

const std::vector<NetworkAddress> kOwn{{"docker0", ip(172, 17, 0, 1), 16}, {"eth0", ip(10, 77, 0, 11), 24}};

std::uint32_t no_route(std::uint32_t /*to*/) {
  return 0;
}
std::uint32_t through_eth0(std::uint32_t /*to*/) {
  return ip(10, 77, 0, 11);
}

TEST(NetworksTest, TheNetworkThatHasTheOtherHostsIsTaken) {
  EXPECT_EQ(networks_to({ip(10, 77, 0, 12), ip(10, 77, 0, 13)}, kOwn, no_route), "10.77.0.0/24");
  EXPECT_EQ(networks_to({}, kOwn, no_route), "");
}

TEST(NetworksTest, AHostBehindARouterIsListedItself) {
  EXPECT_EQ(networks_to({ip(10, 99, 1, 2)}, kOwn, through_eth0), "10.77.0.0/24,10.99.1.2/32");
  EXPECT_EQ(networks_to({ip(10, 99, 1, 2)}, kOwn, no_route), "10.99.1.2/32");
}

TEST(NetworksTest, AListIsTakenAsItIs) {
  EXPECT_EQ(network_list("10.0.0.0/8,192.168.1.0/24", {}).value(), "10.0.0.0/8,192.168.1.0/24");
}

TEST(NetworksTest, WhatIsNoNetworkIsRefused) {
  EXPECT_THAT(network_list("10.0.0/8", {}).error().message, HasSubstr("'10.0.0/8' is no network"));
  EXPECT_THAT(network_list("10.0.0.0/33", {}).error().message, HasSubstr("is no network"));
  EXPECT_THAT(network_list("fp-odd0", {}).error().message, HasSubstr("no interface 'fp-odd0'"));
  EXPECT_THAT(network_list("10.0.0.0/8,", {}).error().message, HasSubstr("no interface ''"));
}

TEST(NetworksTest, AddressesAreChosenByNetworkAndInterface) {
  const auto names = [](const std::string& list) {
    std::string text;
    for (const NetworkAddress& one : addresses_in(list, kOwn)) text += one.interface + " ";
    return text;
  };
  EXPECT_EQ(names("10.77.0.0/24"), "eth0 ");
  EXPECT_EQ(names("docker0,10.0.0.0/8"), "docker0 eth0 ");
  EXPECT_EQ(names("0.0.0.0/0,eth0"), "docker0 eth0 ");
  EXPECT_EQ(names("10.77.0.12/32,eth1,/8,10.77.0.0/,x/y"), "");
}

TEST(NetworksTest, NamesOfThisMachineLeadNowhereElse) {
  EXPECT_EQ(network_list("auto", {{"localhost", 2}}).value(), "");
  EXPECT_EQ(network_list("auto", {{"a-name.that.nobody.has.invalid", 2}}).value(), "");
}

TEST(NetworksTest, PortsThatAreTakenAreLeftOut) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::uint16_t taken = ntohs(address.sin_port);
  EXPECT_THAT(free_ports({taken, taken}, 3), testing::IsEmpty());
  ::close(fd);
  EXPECT_THAT(free_ports({21720, 21750}, 3), testing::SizeIs(3)) << "of many some are free";
}

}  // namespace
}  // namespace footplate
