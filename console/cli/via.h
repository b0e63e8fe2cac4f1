#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "console/cli/commands.h"

namespace footplate {

/// Adds --via to a command that needs a run's console: where the console is on another host, the command is
/// run there by that program, as `ssh HOST COMMAND`. FOOTPLATE_VIA is its default. The result is `handler`
/// behind that; `run` gives the name of the run that is meant, and is read once the handler is called.
Handler with_via(CLI::App& command, std::function<const std::string&()> run, Handler handler);

}  // namespace footplate
