#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace footplate {

/// Where NCCL looks for its tuner and its profiler, and the word for the program itself.
inline constexpr auto kTunerPlugin = "NCCL_TUNER_PLUGIN";
inline constexpr auto kProfilerPlugin = "NCCL_PROFILER_PLUGIN";
inline constexpr auto kOwnPlugin = "STATIC_PLUGIN";

/// Sets the environment variables that the settings of start number `start` stand for
/// (protocol/variables.h), for the libraries of this process: NCCL reads each of them once. What the
/// environment has already stays. Call it before any thread is started: who reads the environment meanwhile
/// may crash. Returns lines for the log. Where config-START.json can't be read it does nothing: that is said
/// later, to all ranks.
std::vector<std::string> set_library_variables(const std::filesystem::path& run_directory, int start);

}  // namespace footplate
