#include "runtime/comm/mpi/session.h"

#include <fmt/format.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

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
  MPI_Comm_rank(*base, &session->members_.rank);
  MPI_Comm_size(*base, &world_size);
  for (int rank = 0; rank < world_size; ++rank) session->members_.origins.push_back(rank);
  if (auto derived = session->derive(); !derived) return tl::unexpected(derived.error());

  auto hosts = gather_hosts(*base, world_size);
  if (!hosts) return tl::unexpected(hosts.error());
  session->hosts_at_start_ = std::move(*hosts);
  session->look_around();
  return session;
}

/// The communicators that are used, out of base_.
Result<void> MpiSession::derive() {
  auto control = duplicate(base_);
  if (!control) return tl::unexpected(control.error());
  auto data = duplicate(base_);
  if (!data) return tl::unexpected(data.error());
  control_ = *control;
  data_ = *data;
  return {};
}

/// Who of the members is where.
void MpiSession::look_around() {
  hosts_.clear();
  for (const int origin : members_.origins)
    hosts_.push_back(hosts_at_start_[static_cast<std::size_t>(origin)]);
  local_rank_ = members_.local_ranks = 0;
  for (int other = 0; other < world_size(); ++other) {
    if (hosts_[static_cast<std::size_t>(other)] != hosts_[static_cast<std::size_t>(rank())]) continue;
    if (other < rank()) ++local_rank_;
    ++members_.local_ranks;
  }
}

int MpiSession::launched_rank() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank == nullptr ? 0 : std::atoi(rank);
}

bool MpiSession::finish() {
  if (lost() || members_.generation > 1) return false;
  for (MPI_Comm* comm : {&data_, &control_, &base_})
    if (*comm != MPI_COMM_NULL) MPI_Comm_free(comm);
  MPI_Finalize();
  return true;
}

void MpiSession::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

// --- after a loss: the extension for fault tolerance (ULFM) ---

#ifdef OMPI_HAVE_MPI_EXT_FTMPI

bool MpiSession::tells_loss(int code) {
  if (code == MPI_SUCCESS) return false;
  int kind = code;
  MPI_Error_class(code, &kind);
  if (kind != MPIX_ERR_PROC_FAILED && kind != MPIX_ERR_PROC_FAILED_PENDING && kind != MPIX_ERR_REVOKED)
    return false;
  if (!lost_.exchange(true) && on_loss_) on_loss_();
  return true;
}

void MpiSession::revoke() {
  for (MPI_Comm comm : {data_, control_, base_}) MPIX_Comm_revoke(comm);
}

/// One shrink, of the base communicator; the others are made from what it gives: two communicators shrunk
/// side by side were seen to hang. Whoever dies meanwhile costs another round. The communicators of before
/// are left as they are: messages may still be in them.
Result<void> MpiSession::shrink() {
  for (int rounds = world_size(); rounds > 0; --rounds) {
    MPI_Comm rest = MPI_COMM_NULL;
    if (const int code = MPIX_Comm_shrink(base_, &rest); code != MPI_SUCCESS)
      return fail(ErrorKind::failed, "MPIX_Comm_shrink: " + mpi_error_text(code));
    MPI_Comm_set_errhandler(rest, MPI_ERRORS_RETURN);
    base_ = rest;
    int size = 0, rank = 0;
    MPI_Comm_size(rest, &size);
    MPI_Comm_rank(rest, &rank);
    const int mine = members_.origins[static_cast<std::size_t>(members_.rank)];
    std::vector<int> origins(static_cast<std::size_t>(size));
    if (derive() && MPI_Allgather(&mine, 1, MPI_INT, origins.data(), 1, MPI_INT, base_) == MPI_SUCCESS) {
      members_.rank = rank;
      members_.origins = std::move(origins);
      ++members_.generation;
      look_around();
      lost_ = false;
      return {};
    }
    MPIX_Comm_revoke(base_);
  }
  return fail(ErrorKind::failed,
              "no world could be made of the ranks that are left: more were lost meanwhile");
}

#else

bool MpiSession::tells_loss(int /*code*/) {
  return false;
}

void MpiSession::revoke() {}

Result<void> MpiSession::shrink() {
  return fail(ErrorKind::failed, "this MPI was built without its fault-tolerance extension (ULFM)");
}

#endif

}  // namespace footplate
