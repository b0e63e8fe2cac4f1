#pragma once

#include <string>

#include "protocol/result.h"

namespace footplate {

/// Writes all of `text` to stdout, as it is shown there. False where that fails; errno says why.
bool print_text(const std::string& text);

/// The outcome of a command whose print_text() has failed with `error`, an errno: 0 where nobody reads any
/// more, as of a pager that has quit. Error (failed): anything else, as a full disk. `what` is what was
/// printed.
Result<int> unwritten(const char* what, int error);

}  // namespace footplate
