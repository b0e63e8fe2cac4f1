#pragma once

#include <filesystem>
#include <string>
#include <system_error>

namespace footplate {

/// "No space left on device (3.2 MB free); free some space, …": what a disk's error means in `folder`
/// and what to do about it.
std::string explain_disk_error(const std::error_code& error, const std::filesystem::path& folder);

}  // namespace footplate
