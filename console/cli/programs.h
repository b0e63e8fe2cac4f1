#pragma once

#include <filesystem>

#include "protocol/schema.h"

namespace footplate {

/// The folder of this program, where the others are too. FOOTPLATE_PROGRAMS, for tests, names another.
std::filesystem::path program_folder();

/// The schema that the build wrote beside the programs: ../share/footplate/schema.json. Error (failed): it
/// isn't there.
Result<Schema> load_schema();

}  // namespace footplate
