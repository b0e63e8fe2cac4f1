#pragma once

#include "protocol/json.h"

namespace footplate {

/// Of footplate and of the libraries in this process, not of those it was compiled with:
/// {"footplate": "0.1.0", "libtorch": "2.11.0", "mpi": "Open MPI v5.0.11"}. May be called before MPI starts.
Json versions();

}  // namespace footplate
