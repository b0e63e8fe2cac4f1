#pragma once

#include <filesystem>
#include <string>

#include "protocol/result.h"

namespace footplate {

/// The version in a torch/version.py, without what follows a '+'; empty: none.
std::string torch_version_in(const std::string& version_py);

/// footplate-rank, for a command in `program_folder`: the one beside it, else the one of the wheel
/// footplate-runtime that was built with the torch of the same environment. Errors (usage): there is none;
/// torch isn't there, or none of the wheel's programs was built with its version. Both say what pip installs.
Result<std::filesystem::path> find_rank(const std::filesystem::path& program_folder);

}  // namespace footplate
