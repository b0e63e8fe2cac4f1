#include "runtime/comm/mpi/declare_lost.h"

#include <dlfcn.h>
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <cstdint>
#include <cstdlib>

namespace footplate {

#ifdef OMPI_HAVE_MPI_EXT_FTMPI
namespace {

using Failed = int(void* process, int status, bool forward);
using EventCall = void(int fd, short what, void* argument);  // NOLINT(google-runtime-int): libevent's

/// What is done within MPI's progress.
struct Report {
  Failed* failed;
  void* process;
};

template <class Type>
Type* find(const char* name) {
  return reinterpret_cast<Type*>(dlsym(RTLD_DEFAULT, name));
}

void tell(int /*fd*/, short /*what*/, void* argument) {  // NOLINT(google-runtime-int): libevent's
  const auto* report = static_cast<const Report*>(argument);
  report->failed(report->process, MPIX_ERR_PROC_FAILED, /*forward=*/false);
  delete report;
}

}  // namespace

std::optional<MpiProcess> own_mpi_process() {
  const auto* self = find<const MpiProcess>("opal_process_info");  // begins with this process's name
  const char* own_rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (self == nullptr || own_rank == nullptr) return std::nullopt;
  if (self->number != static_cast<std::uint32_t>(std::atoi(own_rank))) return std::nullopt;  // another layout
  return *self;
}

/// As Open MPI does it with a report of mpirun's: an event of its own loop, which whoever is in MPI handles
/// in its turn. Called from here it would run beside what other threads do in MPI.
bool declare_lost(const MpiProcess& lost) {
  constexpr short kWrite = 4;  // NOLINT(google-runtime-int): EV_WRITE
  auto* const* loop = find<void*>("opal_sync_event_base");
  const auto process_of = find<void*(MpiProcess)>("ompi_proc_for_name");
  const auto failed = find<Failed>("ompi_errhandler_proc_failed_internal");
  const auto make_event = find<void*(void*, int, short, EventCall*, void*)>("event_new");
  const auto activate = find<void(void*, int, short)>("event_active");
  if (!own_mpi_process() || loop == nullptr || process_of == nullptr || failed == nullptr ||
      make_event == nullptr || activate == nullptr)
    return false;
  void* process = process_of(lost);
  if (process == nullptr) return false;
  auto* report = new Report{failed, process};
  void* event = make_event(*loop, -1, kWrite, tell, report);  // kept: a lost rank is rare
  if (event == nullptr) {
    delete report;
    return false;
  }
  activate(event, kWrite, 1);
  return true;
}

#else

std::optional<MpiProcess> own_mpi_process() {
  return std::nullopt;
}

bool declare_lost(const MpiProcess& /*lost*/) {
  return false;
}

#endif

}  // namespace footplate
