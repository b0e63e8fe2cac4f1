#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "protocol/json.h"
#include "protocol/result.h"

namespace footplate {

/// What `footplate run` has written for a start.
struct StartFiles {
  Json record;  ///< run.json
  Json config;  ///< config-K.json: every setting
};

/// Errors (usage): one of them isn't there, or not JSON.
Result<StartFiles> read_start_files(const std::filesystem::path& run_directory, int start);

/// In the folder of the program that runs.
std::filesystem::path program_beside(const char* name);

/// Of whoever runs this; the number where there is no name.
std::string user_name();

/// Ends process `number`, which was to join a run and isn't one of its ranks: the run goes on without it. Any
/// thread.
[[noreturn]] void leave_before_joining(int number, const std::string& why);

/// The largest order id in journal.lua; 0: none. Ids of a later start go on from there, so that a
/// number means one order in all of a run's files.
std::uint64_t last_journaled_order(const std::filesystem::path& journal);

}  // namespace footplate
