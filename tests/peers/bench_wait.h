#pragma once

#include <cstdio>
#include <memory>

#include "runtime/comm/communicator.h"
#include "runtime/comm/mpi/mpi_session.h"

namespace footplate {

/// A benchmark over MPI has nothing to go on with after an error: it ends all ranks.
inline void wait(const std::unique_ptr<Work>& work) {
  if (const auto done = work->wait(); !done) {
    std::fprintf(stderr, "%s\n", done.error().message.c_str());
    MpiSession::abort(1);
  }
}

}  // namespace footplate
