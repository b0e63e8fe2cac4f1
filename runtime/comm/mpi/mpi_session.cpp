#include "runtime/comm/mpi/mpi_session.h"

#include <fmt/format.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "runtime/comm/mpi/patience.h"

namespace footplate {
namespace {

/// At the end of a run that has lost ranks. What others still save may take that long.
constexpr std::chrono::minutes kOthersEnd{10};
constexpr std::chrono::milliseconds kBetweenLooks{2};

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

/// Two groups that know each other by their leaders, who meet in `bridge`: one communicator, with the group
/// that is `high` behind the other.
[[maybe_unused]] Result<MPI_Comm> merge_with(MPI_Comm group, MPI_Comm bridge, int other_leader, int high) {
  constexpr int kTag = 3;
  MPI_Comm between = MPI_COMM_NULL, merged = MPI_COMM_NULL;
  if (auto ok =
          check(MPI_Intercomm_create(group, 0, bridge, other_leader, kTag, &between), "MPI_Intercomm_create");
      !ok)
    return tl::unexpected(ok.error());
  MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN);
  if (auto ok = check(MPI_Intercomm_merge(between, high, &merged), "MPI_Intercomm_merge"); !ok)
    return tl::unexpected(ok.error());
  MPI_Comm_set_errhandler(merged, MPI_ERRORS_RETURN);
  return merged;
}

}  // namespace

std::string mpi_error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return fmt::format("error {}", code);
  return std::string(text.data(), static_cast<std::size_t>(length));
}

Result<std::unique_ptr<MpiSession>> MpiSession::start(int joins, std::vector<int> groups) {
  int provided = MPI_THREAD_SINGLE;
  if (auto ok = check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "MPI_Init_thread");
      !ok)
    return tl::unexpected(ok.error());
  if (provided < MPI_THREAD_MULTIPLE)
    return fail(
        ErrorKind::failed,
        "this MPI allows only one thread at a time (MPI_THREAD_MULTIPLE is missing); run scripts/deps, "
        "or build with -DFOOTPLATE_MPI=PREFIX of one that has it");

  nap_where_yields_take_long();
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);  // a spawn that fails is an error
  std::unique_ptr<MpiSession> session(new MpiSession);
  session->groups_ = std::move(groups);
  auto base = duplicate(MPI_COMM_WORLD);
  if (!base) return tl::unexpected(base.error());
  session->base_ = *base;
  int world_size = 0;
  MPI_Comm_rank(*base, &session->members_.rank);
  MPI_Comm_size(*base, &world_size);
  for (int rank = 0; rank < world_size; ++rank)
    session->members_.origins.push_back(joins >= 0 ? joins : rank);
  auto derived = derive(*base);
  if (!derived) return tl::unexpected(derived.error());
  session->control_ = derived->control;
  session->data_ = derived->data;

  auto hosts = gather_hosts(*base, world_size);
  if (!hosts) return tl::unexpected(hosts.error());
  for (std::size_t rank = 0; rank < hosts->size(); ++rank)
    session->hosts_by_origin_[session->members_.origins[rank]] = (*hosts)[rank];
  if (const auto own = own_mpi_process())
    for (int rank = 0; rank < world_size; ++rank)
      session->processes_[session->members_.origins[static_cast<std::size_t>(rank)]] = {
          own->job, static_cast<std::uint32_t>(rank)};
  session->find_place();
  if (joins >= 0)
    if (auto met = session->meet_host(); !met) return tl::unexpected(met.error());
  return session;
}

Result<MpiSession::Comms> MpiSession::derive(MPI_Comm base) {
  auto control = duplicate(base);
  if (!control) return tl::unexpected(control.error());
  auto data = duplicate(base);
  if (!data) return tl::unexpected(data.error());
  return Comms{base, *control, *data};
}

/// Who of the members is where.
void MpiSession::find_place() {
  hosts_.clear();
  for (const int origin : members_.origins) hosts_.push_back(hosts_by_origin_.at(origin));
  local_rank_ = members_.local_ranks = 0;
  for (int other = 0; other < world_size(); ++other) {
    if (hosts_[static_cast<std::size_t>(other)] != hosts_[static_cast<std::size_t>(rank())]) continue;
    if (other < rank()) ++local_rank_;
    ++members_.local_ranks;
  }
}

std::vector<int> MpiSession::host_numbers() const {
  std::vector<int> numbers;
  for (int rank = 0; rank < world_size(); ++rank) {
    const auto origin = static_cast<std::size_t>(members_.origins[static_cast<std::size_t>(rank)]);
    const auto host = std::find(hosts_.begin(), hosts_.end(), hosts_[static_cast<std::size_t>(rank)]);
    if (groups_.empty())
      numbers.push_back(static_cast<int>(host - hosts_.begin()));
    else  // a rank that has joined is with the first one: the same on all ranks
      numbers.push_back(origin < groups_.size() ? groups_[origin] : groups_.front());
  }
  return numbers;
}

std::vector<MpiProcess> MpiSession::processes() const {
  std::vector<MpiProcess> processes;
  for (const int origin : members_.origins)
    if (const auto found = processes_.find(origin); found != processes_.end())
      processes.push_back(found->second);
  return processes.size() == members_.origins.size() ? processes : std::vector<MpiProcess>();
}

int MpiSession::launched_rank() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return rank == nullptr ? 0 : std::atoi(rank);
}

bool MpiSession::finish() {
  if (lost()) return false;
  if (members_.generation > 1) {
    await_all_at_end();
    return false;
  }
  for (MPI_Comm* comm : {&data_, &control_, &base_})
    if (*comm != MPI_COMM_NULL) MPI_Comm_free(comm);
  MPI_Finalize();
  return true;
}

/// As MPI_Finalize() does where no rank was ever lost: a process that is gone counts as lost for those who
/// still save. An error says that somebody has left already, or was lost.
void MpiSession::await_all_at_end() {
  MPI_Request request = MPI_REQUEST_NULL;
  int over = MPI_Ibarrier(base_, &request) == MPI_SUCCESS ? 0 : 1;
  const auto deadline = std::chrono::steady_clock::now() + kOthersEnd;
  while (over == 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kBetweenLooks);
    if (MPI_Test(&request, &over, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
  }
}

void MpiSession::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

// --- after a loss: the extension for fault tolerance (ULFM) ---

void MpiSession::give_up() {
  if (!lost_.exchange(true) && on_loss_) on_loss_();
}

#ifdef OMPI_HAVE_MPI_EXT_FTMPI

bool MpiSession::tells_loss(int code) {
  if (code == MPI_SUCCESS) return false;
  int kind = code;
  MPI_Error_class(code, &kind);
  if (kind != MPIX_ERR_PROC_FAILED && kind != MPIX_ERR_PROC_FAILED_PENDING && kind != MPIX_ERR_REVOKED)
    return false;
  give_up();
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
    // A loss meanwhile may have let some finish a round that the others made anew: the generation is what all
    // have then, not one more than before.
    using Entry = std::array<std::int64_t, 2>;  // origin, generation
    const Entry mine = {members_.origins[static_cast<std::size_t>(members_.rank)],
                        static_cast<std::int64_t>(members_.generation)};
    std::vector<Entry> all(static_cast<std::size_t>(size));
    const auto derived = derive(base_);
    if (derived &&
        MPI_Allgather(mine.data(), 2, MPI_INT64_T, all.data(), 2, MPI_INT64_T, base_) == MPI_SUCCESS) {
      control_ = derived->control;
      data_ = derived->data;
      members_.rank = rank;
      members_.origins.clear();
      for (const auto& [origin, generation] : all) {
        members_.origins.push_back(static_cast<int>(origin));
        members_.generation = std::max(members_.generation, static_cast<std::uint32_t>(generation));
      }
      ++members_.generation;
      find_place();
      lost_ = false;
      return {};
    }
    MPIX_Comm_revoke(base_);
  }
  return fail(ErrorKind::failed,
              "no world could be made of the ranks that are left: more were lost meanwhile");
}

// --- one more ---

Result<void> MpiSession::meet_host() {
  MPI_Comm parent = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parent);
  if (parent == MPI_COMM_NULL)
    return fail(ErrorKind::usage, "--joins is for processes that rank 0 of a run spawns");
  if (auto ok = check(MPI_Intercomm_merge(parent, 1, &host_), "MPI_Intercomm_merge"); !ok) return ok;
  return check(MPI_Comm_set_errhandler(host_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

/// Collective over a world that has just grown: who is who in it.
Result<MpiSession::Roster> MpiSession::introduce(MPI_Comm base) const {
  struct Entry {
    std::int64_t pid;
    std::uint32_t generation;
    int origin;
    bool is_process;
    MpiProcess process;
    std::array<char, MPI_MAX_PROCESSOR_NAME> host;
  };
  const auto process = own_mpi_process();
  Entry mine{::getpid(),
             members_.generation,
             members_.origins[static_cast<std::size_t>(members_.rank)],
             process.has_value(),
             process.value_or(MpiProcess()),
             {}};
  int length = 0, size = 0;
  MPI_Get_processor_name(mine.host.data(), &length);
  MPI_Comm_size(base, &size);
  std::vector<Entry> all(static_cast<std::size_t>(size));
  const int bytes = static_cast<int>(sizeof(Entry));
  if (auto ok = check(MPI_Allgather(&mine, bytes, MPI_BYTE, all.data(), bytes, MPI_BYTE, base),
                      "introducing who joins");
      !ok)
    return tl::unexpected(ok.error());
  Roster roster;
  MPI_Comm_rank(base, &roster.members.rank);
  roster.members.generation = all.front().generation + 1;  // the joining rank doesn't know it
  for (const Entry& one : all) {
    roster.members.origins.push_back(one.origin);
    roster.hosts[one.origin] = one.host.data();
    roster.pids[one.origin] = one.pid;
    if (one.is_process) roster.processes[one.origin] = one.process;
  }
  return roster;
}

void MpiSession::take(const Comms& comms, Roster roster) {
  base_ = comms.base;
  control_ = comms.control;
  data_ = comms.data;
  members_ = std::move(roster.members);
  hosts_by_origin_.merge(roster.hosts);
  pids_ = std::move(roster.pids);
  processes_ = std::move(roster.processes);
  find_place();
}

/// The ranks that are there decide by an agreement, which no loss can keep from ending: either all have the
/// new world, or none has.
Result<void> MpiSession::grow(MPI_Comm joining) {
  int wanted = joining != MPI_COMM_NULL ? 1 : 0;
  Comms comms;
  Roster roster;
  const bool grown = MPI_Bcast(&wanted, 1, MPI_INT, 0, base_) == MPI_SUCCESS && wanted != 0 && [&] {
    auto merged = merge_with(base_, joining, 1, /*high=*/0);
    if (!merged) return false;
    comms.base = *merged;
    const auto derived = derive(comms.base);
    if (derived) comms = *derived;
    auto introduced = derived ? introduce(comms.base) : Result<Roster>(tl::unexpected(derived.error()));
    if (!introduced) return false;
    roster = *std::move(introduced);
    return true;
  }();
  if (!grown) MPIX_Comm_revoke(base_);  // whoever still waits for this rank
  int all = grown ? 1 : 0;
  MPIX_Comm_agree(base_, &all);  // its code tells of losses; the value is the same on all
  if (grown && all != 0) {
    take(comms, std::move(roster));
    return {};
  }
  for (MPI_Comm comm : {comms.base, comms.control, comms.data})
    if (comm != MPI_COMM_NULL) MPIX_Comm_revoke(comm);
  lost_ = true;
  return fail(ErrorKind::lost, "the replacement couldn't join");
}

Result<void> MpiSession::join() {
  auto merged = merge_with(MPI_COMM_SELF, host_, 0, /*high=*/1);
  if (!merged) return tl::unexpected(merged.error());
  auto derived = derive(*merged);
  if (!derived) return tl::unexpected(derived.error());
  auto roster = introduce(*merged);
  if (!roster) return tl::unexpected(roster.error());
  take(*derived, *std::move(roster));
  return {};
}

#else

Result<void> MpiSession::meet_host() {
  return fail(ErrorKind::failed, "this MPI was built without its fault-tolerance extension (ULFM)");
}

Result<void> MpiSession::grow(MPI_Comm /*joining*/) {
  return meet_host();
}

Result<void> MpiSession::join() {
  return meet_host();
}

bool MpiSession::tells_loss(int /*code*/) {
  return false;
}

void MpiSession::revoke() {}

Result<void> MpiSession::shrink() {
  return fail(ErrorKind::failed, "this MPI was built without its fault-tolerance extension (ULFM)");
}

#endif

}  // namespace footplate
