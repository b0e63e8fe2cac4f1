#include "console/doctor/hosts.h"

#include <gmock/gmock.h>

namespace footplate {
namespace {

using testing::HasSubstr;

/// What mpirun writes under what ssh wrote.
constexpr const char* kDaemon =
    "------------------------------------------------------------\n"
    "A daemon failed to report back after being spawned. This could\n"
    "be due to several factors, including inability to find the\n";

void expect_explained(const std::string& said, const std::string& why, const std::string& mend) {
  const LaunchFailure failure = explain_launch(said + "\n" + kDaemon, "n7", "/opt/mpi");
  EXPECT_EQ(failure.why, why);
  EXPECT_THAT(failure.mend, HasSubstr(mend));
}

TEST(HostsTest, WhatSshSaysLeadsToWhatHelps) {
  const auto same = [](const std::string& line, const std::string& mend) {
    expect_explained(line, line, mend);
  };
  same("ssh: Could not resolve hostname n7: Name or service not known", "getent hosts n7");
  same("ssh: connect to host n7 port 22: Connection refused", "no ssh server listens on n7");
  same("ssh: connect to host n7 port 22: Connection timed out", "firewall drops");
  same("ssh: connect to host n7 port 22: No route to host", "ip route get n7");
  same("Host key verification failed.", "ssh n7 true");
  same("ann@n7: Permission denied (publickey,password).", "ssh-copy-id n7");
  same("bash: line 1: /opt/mpi/bin/prted: No such file or directory", "at the same path on n7: /opt/mpi");
  same("footplate-rank: error while loading shared libraries: libc10.so: cannot open shared object file",
       "scripts/deps --check there");
}

TEST(HostsTest, WhatIsNotKnownIsShownAsItIs) {
  expect_explained("kex_exchange_identification: read", "kex_exchange_identification: read",
                   "BatchMode=yes n7 true");
  EXPECT_EQ(explain_launch("Abort is in progress...hit ctrl-c again\n", "n7", "/opt/mpi").why, "");
  // mpirun's own warning comes before what ssh says.
  expect_explained("[n1:42] plm:ssh: Warning: setpgid failed: Permission denied(13)\nodd", "odd", "n7");
}

TEST(HostsTest, PairsAreAllOrARing) {
  EXPECT_EQ(pairs_to_measure(1).size(), 0U);
  EXPECT_EQ(pairs_to_measure(2).size(), 1U);
  EXPECT_EQ(pairs_to_measure(kAllPairs).size(), kAllPairs * (kAllPairs - 1) / 2);
  const auto ring = pairs_to_measure(kAllPairs + 1);
  EXPECT_EQ(ring.size(), kAllPairs + 1);
  EXPECT_EQ(ring.back(), std::make_pair(kAllPairs, std::size_t{0}));
}

TEST(HostsTest, ANameThatComesAgainAddsItsSlots) {
  const auto hosts = parse_hosts("n1:2,n2,n1");
  ASSERT_TRUE(hosts) << hosts.error().message;
  ASSERT_EQ(hosts->size(), 2U);
  EXPECT_EQ(hosts->front().slots, 3);
}

}  // namespace
}  // namespace footplate
