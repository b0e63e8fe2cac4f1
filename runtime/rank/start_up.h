#pragma once

#include <filesystem>
#include <string>

#include "protocol/json.h"
#include "protocol/result.h"
#include "run_files/run_file.h"

namespace footplate {

/// What `footplate run` has written for a start.
struct StartFiles {
  RunFile record;
  Json config;  ///< config-K.json: every setting
};

/// Errors (usage): one of them isn't there, or not JSON.
Result<StartFiles> read_start_files(const std::filesystem::path& run_directory, int start);

/// Ends process `number`, which was to join a run and isn't one of its ranks: the run goes on without it. Any
/// thread.
[[noreturn]] void leave_before_joining(int number, const std::string& why);

}  // namespace footplate
