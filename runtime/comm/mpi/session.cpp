#include "runtime/comm/mpi/session.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>

namespace footplate {
namespace {

Result<void> check(int code, const char* what) {
  if (code == MPI_SUCCESS) return {};
  return fail(ErrorKind::failed, fmt::format("MPI could not start: {}: {}", what, mpi_error_text(code)));
}

/// Collective. Every rank's host name, by rank.
Result<std::vector<std::string>> gather_hosts(MPI_Comm comm, int world_size) {
  using Name = std::array<char, MPI_MAX_PROCESSOR_NAME>;
  Name mine{};
  int length = 0;
  if (auto ok = check(MPI_Get_processor_name(mine.data(), &length), "MPI_Get_processor_name"); !ok)
    return tl::unexpected(ok.error());
  std::vector<Name> all(static_cast<std::size_t>(world_size));
  const int size = static_cast<int>(mine.size());
  if (auto ok = check(MPI_Allgather(mine.data(), size, MPI_CHAR, all.data(), size, MPI_CHAR, comm),
                      "gathering the host names");
      !ok)
    return tl::unexpected(ok.error());
  std::vector<std::string> hosts;
  for (const Name& name : all) hosts.emplace_back(name.data());
  return hosts;
}

/// Errors on a communicator are returned, not fatal; a duplicate inherits that.
Result<MPI_Comm> duplicate(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  if (auto ok = check(MPI_Comm_dup(comm, &copy), "MPI_Comm_dup"); !ok) return tl::unexpected(ok.error());
  if (auto ok = check(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler"); !ok)
    return tl::unexpected(ok.error());
  return copy;
}

}  // namespace

std::string mpi_error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return fmt::format("error {}", code);
  return std::string(text.data(), static_cast<std::size_t>(length));
}

Result<std::unique_ptr<MpiSession>> MpiSession::start() {
  int provided = MPI_THREAD_SINGLE;
  if (auto ok = check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
      !ok)
    return tl::unexpected(ok.error());
  if (provided < MPI_THREAD_MULTIPLE)
    return fail(
        ErrorKind::failed,
        "this MPI allows only one thread at a time (MPI_THREAD_MULTIPLE is missing); run scripts/deps, "
        "or build with -DFOOTPLATE_MPI=PREFIX of one that has it");

  std::unique_ptr<MpiSession> session(new MpiSession);
  auto base = duplicate(MPI_COMM_WORLD);
  if (!base) return tl::unexpected(base.error());
  session->base_ = *base;
  int world_size = 0;
  MPI_Comm_rank(*base, &session->rank_);
  MPI_Comm_size(*base, &world_size);

  auto control = duplicate(*base);
  if (!control) return tl::unexpected(control.error());
  session->control_ = *control;
  auto data = duplicate(*base);
  if (!data) return tl::unexpected(data.error());
  session->data_ = *data;

  auto hosts = gather_hosts(*base, world_size);
  if (!hosts) return tl::unexpected(hosts.error());
  session->hosts_ = std::move(*hosts);
  session->local_size_ = 0;
  for (std::size_t other = 0; other < session->hosts_.size(); ++other) {
    if (session->hosts_[other] != session->hosts_[static_cast<std::size_t>(session->rank_)]) continue;
    if (static_cast<int>(other) < session->rank_) ++session->local_rank_;
    ++session->local_size_;
  }
  return session;
}

int MpiSession::launched_rank() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank == nullptr ? 0 : std::atoi(rank);
}

void MpiSession::finish() {
  for (MPI_Comm* comm : {&data_, &control_, &base_})
    if (*comm != MPI_COMM_NULL) MPI_Comm_free(comm);
  MPI_Finalize();
}

void MpiSession::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

}  // namespace footplate
