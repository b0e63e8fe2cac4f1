#pragma once

#include <optional>
#include <string_view>

#include "protocol/subprocess.h"

namespace footplate {

/// Shows `text` in $PAGER, or in less or more, on this process's terminal, which it has until it ends.
/// Nothing: none of them can be started.
std::optional<Subprocess> start_pager(std::string_view text);

}  // namespace footplate
