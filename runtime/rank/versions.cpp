#include "runtime/rank/versions.h"

#include "protocol/version.h"
#include "runtime/comm/mpi/mpi_trial.h"
#include "runtime/train/libtorch_version.h"

namespace footplate {

Json versions() {
  return {{"footplate", kFootplateVersion}, {"libtorch", libtorch_version()}, {"mpi", mpi_library()}};
}

}  // namespace footplate
