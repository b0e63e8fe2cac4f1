#include "console/launch/start/launch_failure.h"

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

TEST(LaunchFailureTest, WhatSshSaysLeadsToWhatHelps) {
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

TEST(LaunchFailureTest, WhatIsNotKnownIsShownAsItIs) {
  expect_explained("kex_exchange_identification: read", "kex_exchange_identification: read",
                   "BatchMode=yes n7 true");
  EXPECT_EQ(explain_launch("Abort is in progress...hit ctrl-c again\n", "n7", "/opt/mpi").why, "");
  // mpirun's own warning comes before what ssh says.
  expect_explained("[n1:42] plm:ssh: Warning: setpgid failed: Permission denied(13)\nodd", "odd", "n7");
}

TEST(LaunchFailureTest, TheHostThatMpirunNamesIsExplained) {
  const std::string said = std::string("ssh: connect to host n7 port 22: Connection refused\n") + kDaemon +
                           "  Local host:    n1\n  Remote host:   n7\n  Daemon exit status: 255\n";
  EXPECT_EQ(unreached_host(said), "n7");
  EXPECT_THAT(
      explain_unreached(said, "/opt/mpi"),
      HasSubstr("host n7 starts no process: ssh: connect to host n7 port 22: Connection refused; check: no "
                "ssh server listens on n7"));
  EXPECT_EQ(explain_unreached("a rank has printed this", "/opt/mpi"), "");
  EXPECT_EQ(unreached_host("  Remote host:"), "");
}

}  // namespace
}  // namespace footplate
