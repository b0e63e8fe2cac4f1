#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace footplate {

/// The paths of the libraries of this process whose file has that name.
std::vector<std::filesystem::path> loaded_libraries(std::string_view name);

/// What the loader said last.
std::string loader_error();

}  // namespace footplate
