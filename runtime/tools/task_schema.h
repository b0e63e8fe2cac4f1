#pragma once

#include <string>

namespace footplate {

/// Writes the schema of a run whose run.task is `task` to stdout, as JSON. Exit code 2, and the reason on
/// stderr and as {"error": …} on stdout: there is no such task, or its declaration can't be used.
int print_schema_of(const std::string& task);

}  // namespace footplate
