#include "runtime/comm/mpi/clocks_ahead.h"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <vector>

#include "runtime/base/fault.h"

namespace footplate {
namespace {

/// Whoever reads two logs side by side is led astray by more.
constexpr double kFar_s = 10;

double now_s(int rank) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  const auto wrong = fault("clock", rank);
  return now.count() + (wrong ? static_cast<double>(wrong->get("s").value_or(0)) : 0.0);
}

}  // namespace

std::optional<std::map<std::string, double>> clocks_ahead(MpiSession& session) {
  std::vector<double> clocks(static_cast<std::size_t>(session.world_size()));
  int code = MPI_Barrier(session.control());
  const double mine = now_s(session.rank());
  if (code == MPI_SUCCESS)
    code = MPI_Allgather(&mine, 1, MPI_DOUBLE, clocks.data(), 1, MPI_DOUBLE, session.control());
  if (code != MPI_SUCCESS) {
    session.tells_loss(code);
    return std::nullopt;
  }
  std::map<std::string, double> far;
  for (std::size_t rank = 1; rank < clocks.size(); ++rank)
    if (const double ahead = clocks[rank] - clocks.front(); std::abs(ahead) > kFar_s)
      far[session.hosts()[rank]] = ahead;
  return far;
}

}  // namespace footplate
