#include "runtime/comm/mpi/declare_lost.h"

#include <dlfcn.h>
#include <mpi.h>
#if __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include <cstdint>
#include <cstdlib>

namespace footplate {
namespace {

/// Open MPI's name of a process: its job, and its number in it.
struct ProcessName {
  std::uint32_t job;
  std::uint32_t rank;
};

template <class Type>
Type* find(const char* name) {
  return reinterpret_cast<Type*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

bool declare_lost(int rank) {
#ifdef OMPI_HAVE_MPI_EXT_FTMPI
  const auto* self = find<const ProcessName>("opal_process_info");  // begins with this process's name
  const auto process_of = find<void*(ProcessName)>("ompi_proc_for_name");
  const auto failed = find<int(void*, int, bool)>("ompi_errhandler_proc_failed_internal");
  const char* own_rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (self == nullptr || process_of == nullptr || failed == nullptr || own_rank == nullptr) return false;
  if (self->rank != static_cast<std::uint32_t>(std::atoi(own_rank))) return false;  // another layout
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank < 0 || rank >= size) return false;
  void* process = process_of({self->job, static_cast<std::uint32_t>(rank)});
  if (process == nullptr) return false;
  failed(process, MPIX_ERR_PROC_FAILED, /*forward=*/false);
  return true;
#else
  return rank < 0;
#endif
}

}  // namespace footplate
