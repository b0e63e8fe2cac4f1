#pragma once

#include <memory>

#include "console/client/prompt/terminal.h"

namespace footplate {

/// Lines in, lines out, no escapes: a dumb terminal, a pipe, a file. Without a terminal at stdin there is no
/// prompt, and only values go to stdout.
std::unique_ptr<Terminal> make_plain_terminal(Background& background);

}  // namespace footplate
