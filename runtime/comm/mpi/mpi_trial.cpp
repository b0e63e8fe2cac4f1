#include "runtime/comm/mpi/mpi_trial.h"

#include <fmt/format.h>
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <limits>
#include <vector>

namespace footplate {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

constexpr int kSmall = 8;           ///< bytes
constexpr int kLarge = 16'000'000;  ///< bytes: as large as a bucket of gradients gets
constexpr int kSmallRounds = 500;
constexpr int kMostRounds = 5;
constexpr double kLargeTakes_ms = 2000;  ///< of rounds with large messages, after the first

/// Time of one message there and back, of the best of `rounds`, in milliseconds.
Result<double> best_round(MpiSession& session, std::vector<char>& buffer, int bytes, int rounds) {
  const int other = 1 - session.rank();
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    for (const bool sends : {session.rank() == 0, session.rank() != 0}) {
      const int code =
          sends ? MPI_Send(buffer.data(), bytes, MPI_CHAR, other, 0, session.data())
                : MPI_Recv(buffer.data(), bytes, MPI_CHAR, other, 0, session.data(), MPI_STATUS_IGNORE);
      if (code != MPI_SUCCESS) return fail(ErrorKind::failed, mpi_error_text(code));
    }
    best = std::min(best, milliseconds_since(start));
  }
  return best;
}

}  // namespace

Result<Json> measure_link(MpiSession& session) {
  if (session.world_size() != 2) return fail(ErrorKind::usage, "a link is between two ranks");
  std::vector<char> buffer(kLarge);
  const auto small = best_round(session, buffer, kSmall, kSmallRounds);
  if (!small) return tl::unexpected(small.error());
  auto large = best_round(session, buffer, kLarge, 1);
  if (!large) return tl::unexpected(large.error());
  int rounds = std::clamp(static_cast<int>(kLargeTakes_ms / *large), 0, kMostRounds);
  if (const int code = MPI_Bcast(&rounds, 1, MPI_INT, 0, session.data()); code != MPI_SUCCESS)
    return fail(ErrorKind::failed, mpi_error_text(code));
  if (rounds > 0) {
    const auto more = best_round(session, buffer, kLarge, rounds);
    if (!more) return tl::unexpected(more.error());
    large = std::min(*large, *more);
  }
  constexpr double kUsPerMs = 1000, kBytesPerMsOfGb = 1e6;
  return Json{{"hosts", session.hosts()},
              {"gb_per_s", kLarge / (*large / 2) / kBytesPerMsOfGb},
              {"latency_us", *small / 2 * kUsPerMs}};
}

std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "an MPI of unknown version";
  const std::string whole(text.data(), static_cast<std::size_t>(length));
  return whole.substr(0, whole.find_first_of(",\n"));  // "Open MPI v5.0.11, package: …"
}

#ifdef OMPI_HAVE_MPI_EXT_FTMPI

bool has_fault_tolerance() {
  return true;
}

Result<Json> lose_a_rank(MpiSession& session) {
  MPI_Comm comm = session.data();
  MPI_Barrier(comm);
  if (session.rank() == session.world_size() - 1) std::raise(SIGKILL);
  const auto killed = Clock::now();
  int code = MPI_SUCCESS;
  while (code == MPI_SUCCESS) {  // whoever tries it bounds it
    int one = 1;
    code = MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_SUM, comm);
  }
  const double noticed = milliseconds_since(killed);
  MPIX_Comm_revoke(comm);
  MPI_Comm rest = MPI_COMM_NULL;
  code = MPIX_Comm_shrink(comm, &rest);
  if (code != MPI_SUCCESS) return fail(ErrorKind::failed, "MPIX_Comm_shrink: " + mpi_error_text(code));
  int survivors = 0;
  MPI_Comm_size(rest, &survivors);
  return Json{
      {"survivors", survivors}, {"noticed_ms", noticed}, {"recovered_ms", milliseconds_since(killed)}};
}

#else

bool has_fault_tolerance() {
  return false;
}

Result<Json> lose_a_rank(MpiSession& /*session*/) {
  return fail(ErrorKind::failed, "this MPI was built without its fault-tolerance extension (ULFM)");
}

#endif

}  // namespace footplate
