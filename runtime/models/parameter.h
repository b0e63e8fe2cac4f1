#pragma once

#include "footplate/task.h"

namespace footplate {

using v1::Parameter;

}  // namespace footplate
