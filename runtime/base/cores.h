#pragma once

#include <filesystem>

namespace footplate {

/// Cores that this process may compute on: those that it is bound to, and no more than its control groups
/// leave time for. 1 at least. The standard library's hardware_concurrency() knows neither.
int read_usable_cores(const std::filesystem::path& root = "/");

/// The same, as it was at the first call: libraries bind threads to cores later. Any thread.
int usable_cores();

}  // namespace footplate
