#pragma once

#include <filesystem>

#include "protocol/schema.h"

namespace footplate {

/// The folder of this program, where the others are too. FOOTPLATE_PROGRAMS, for tests, names another.
std::filesystem::path program_folder();

/// The schema that the build wrote, where it is in this layout (protocol/layout.h). Error (failed): it
/// isn't there.
Result<Schema> load_schema();

/// The schema of a run whose run.task is `task`: of one that declares settings the rank's program is asked,
/// once in this process. Errors: what the plugin lacks (usage); the rank's program can't be asked (failed).
Result<Schema> load_schema_of(const std::string& task);
/// The same for a run that has been started, by what its start `start` was given.
Result<Schema> load_schema_of_run(const std::filesystem::path& directory, int start);

}  // namespace footplate
