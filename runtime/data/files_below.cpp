#include "runtime/data/files_below.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace footplate {

namespace fs = std::filesystem;

Result<std::vector<fs::path>> files_below(const fs::path& folder, const std::string& extension) {
  if (::access(folder.c_str(), R_OK | X_OK) != 0)  // else it would pass for an empty one
    return fail(ErrorKind::usage, fmt::format("data.corpus: can't read the folder {}: {}", folder.string(),
                                              std::strerror(errno)));
  std::vector<fs::path> files;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(folder, options, error), end; !error && entry != end;
       entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.filename().string().starts_with('.')) {
      if (entry->is_directory(error)) entry.disable_recursion_pending();
    } else if (entry->is_regular_file(error) && (extension.empty() || path.extension() == extension)) {
      files.push_back(path);
    }
  }
  if (error)
    return fail(ErrorKind::failed,
                fmt::format("data.corpus: can't list all of {}: {}", folder.string(), error.message()));
  if (files.empty())
    return fail(ErrorKind::usage,
                fmt::format("data.corpus = \"{}\": the folder has no files{}", folder.string(),
                            extension.empty() ? "" : " that end in " + extension));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace footplate
