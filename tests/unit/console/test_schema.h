#pragma once

#include "protocol/schema.h"

namespace footplate::test {

/// A small schema with one of everything: live, fixed, computed, a list, a choice, roles, aliases, actions.
Schema small_schema();

}  // namespace footplate::test
