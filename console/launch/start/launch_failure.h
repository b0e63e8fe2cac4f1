#pragma once

#include <string>
#include <string_view>

namespace footplate {

/// Why a process on a host didn't start.
struct LaunchFailure {
  std::string why;   ///< what ssh or mpirun said, one line; empty: nothing
  std::string mend;  ///< for this host
};
/// `said`: all that mpirun and ssh wrote; `prefix`: where Open MPI is here.
LaunchFailure explain_launch(std::string_view said, const std::string& host, const std::string& prefix);

/// The host that mpirun could start nothing on, as it says: a line "Remote host: n7" in one of its boxes;
/// empty: it names none.
std::string unreached_host(std::string_view said);

/// "host n7 starts no process: ssh: connect to host n7 port 22: Connection refused; check: …", for a start of
/// which mpirun has said all of `said`; empty where that names no host.
std::string explain_unreached(std::string_view said, const std::string& prefix);

}  // namespace footplate
