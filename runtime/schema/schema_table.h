#pragma once

#include "protocol/schema.h"

namespace footplate {

/// The one table of settings and actions. Needs neither LibTorch nor MPI.
Schema runtime_schema();

}  // namespace footplate
