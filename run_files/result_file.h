#pragma once

#include <filesystem>
#include <optional>

#include "protocol/messages/run_result.h"
#include "protocol/result.h"

namespace footplate {

/// How a start ended, of result.json or result-K.json. Nothing: there is no such file, or it holds no object.
/// Fields of another type are as in a RunResult that nobody filled.
std::optional<RunResult> read_result_file(const std::filesystem::path& path);

/// Errors: as write_json_file.
Result<void> write_result_file(const std::filesystem::path& path, const RunResult& result);

}  // namespace footplate
