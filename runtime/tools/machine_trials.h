#pragma once

#include <cstdint>
#include <string>

namespace footplate {

/// What `footplate doctor` has a rank try (docs/start.md, "Is this machine fit?").
struct DoctorOptions {
  std::string what;           ///< versions, products, reduce, loss or link
  std::int64_t elements = 0;  ///< of a reduction
};

/// versions: which libraries this process has. products: how long matrices take with each library of
/// run.blas. Both without MPI. reduce: an all-reduce of float32 among all ranks, checked and timed. link:
/// bandwidth and latency between ranks 0 and 1. loss: the last rank is killed, and the others go on without
/// it. Rank 0 prints one line of JSON. Returns the exit code.
int run_doctor(const DoctorOptions& options);

}  // namespace footplate
