#include "console/sinks/replaced_file.h"

namespace footplate::sinks {

namespace fs = std::filesystem;

std::optional<fs::path> replaced_file(const fs::path& path) {
  constexpr int kMostLinks = 40;  // as the kernel has it
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::exists(status)) {
    if (!fs::is_regular_file(status)) return std::nullopt;
    fs::path file = fs::canonical(path, error);
    return error ? std::nullopt : std::optional(file);
  }
  fs::path file = path;  // canonical() knows no link to a file that is still to be made
  for (int links = 0; links < kMostLinks && fs::is_symlink(fs::symlink_status(file, error)); ++links)
    file = file.parent_path() / fs::read_symlink(file, error);
  return file;
}

}  // namespace footplate::sinks
