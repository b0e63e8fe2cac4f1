#include "runtime/comm/mpi/trial.h"

#include <fmt/format.h>
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <array>
#include <chrono>
#include <csignal>

namespace footplate {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

}  // namespace

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
