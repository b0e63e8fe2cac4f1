#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "protocol/settings.h"

namespace footplate {

/// Where NCCL looks for its tuner and its profiler, and the word for the program itself.
inline constexpr auto kTunerPlugin = "NCCL_TUNER_PLUGIN";
inline constexpr auto kProfilerPlugin = "NCCL_PROFILER_PLUGIN";
inline constexpr auto kOwnPlugin = "STATIC_PLUGIN";

/// Sets the environment variables that the settings of start number `start` stand for
/// (protocol/nccl/variables.h), for the libraries of this process: NCCL reads each of them once. What the
/// environment has already stays, and so does what came from NCCL's own files
/// (protocol/nccl/variable_files.h): NCCL reads those of this host. Call it before any thread is started: who
/// reads the environment meanwhile may crash. Returns lines for the log. Where config-START.json can't be
/// read it does nothing: that is said later, to all ranks.
std::vector<std::string> set_library_variables(const Schema& schema,
                                               const std::filesystem::path& run_directory, int start);

/// nccl.debug and nccl.debug_subsystems into the environment while threads run, which may read it meanwhile;
/// NCCL reads them again when its log is opened anew. Whether they have changed. What the environment of
/// footplate run has stays. One thread at a time, after set_library_variables().
bool set_log_variables(const Settings& settings);

}  // namespace footplate
