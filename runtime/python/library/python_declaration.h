#pragma once

#include <string>

#include "footplate/task.h"

namespace footplate {

/// What hosting.declaration() has written as JSON. Throws where it can't be one.
v1::Declaration declaration_from(const std::string& text);

}  // namespace footplate
