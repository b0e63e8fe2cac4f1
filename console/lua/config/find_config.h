#pragma once

#include <filesystem>
#include <string>

#include "protocol/result.h"

namespace footplate {

/// A config on disk, and how messages and sources name it.
struct ConfigFile {
  std::filesystem::path path;
  std::string shown_as;
};

/// Finds what the user called `name`: a file of that name, or, where it has no folder, `configs/NAME.lua`
/// here, or among those that came with the programs in `program_folder` (protocol/layout.h), or a preset,
/// `configs/presets/NAME.lua` in one of these. The error says where it looked and what there is.
Result<ConfigFile> find_config(const std::string& name, const std::filesystem::path& program_folder);

}  // namespace footplate
