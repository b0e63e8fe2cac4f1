#pragma once

#include <filesystem>
#include <string>

#include "protocol/messages/run_result.h"

namespace footplate {

/// How a run ended, for stderr: nothing where it was done or asked for, else the reason, and the launcher's
/// last lines where it never reached a step.
std::string explanation(const std::string& name, const std::filesystem::path& directory,
                        const RunResult& result);

/// The same of a start that did no step, and after which the run is as it was before.
std::string explanation_of_refused(const std::string& name, const std::filesystem::path& directory,
                                   const RunResult& refused);

}  // namespace footplate
