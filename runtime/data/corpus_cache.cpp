#include "runtime/data/corpus_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace footplate {
namespace {

namespace fs = std::filesystem;

Result<fs::path> cache_folder() {
  if (const char* given = std::getenv("FOOTPLATE_CACHE"); given != nullptr && *given != '\0')
    return fs::path(given);
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return fs::path(home) / ".cache/footplate/data";
  return fail(
      ErrorKind::usage,
      "no folder to keep the corpus in: neither FOOTPLATE_CACHE nor HOME is set; set FOOTPLATE_CACHE");
}

}  // namespace

Result<fs::path> cached_corpus(const std::string& name,
                               const std::function<Result<void>(std::ostream&)>& write) {
  const auto folder = cache_folder();
  if (!folder) return tl::unexpected(folder.error());
  const fs::path path = *folder / name;
  std::error_code error;
  if (fs::exists(path, error)) return path;

  fs::create_directories(*folder, error);
  // One name per process: ranks that start together each write their own, and the last rename wins.
  const fs::path temporary = *folder / fmt::format("{}.tmp-{}", name, getpid());
  std::ofstream out(temporary, std::ios::binary);
  auto written = write(out);
  out.close();
  if (written && !out)
    written =
        fail(ErrorKind::failed,
             fmt::format(
                 "can't write {}: is the disk full, or the folder read-only? FOOTPLATE_CACHE names another",
                 temporary.string()));
  if (written) {
    fs::rename(temporary, path, error);
    if (!error) return path;
    written =
        fail(ErrorKind::failed, fmt::format("can't rename {}: {}", temporary.string(), error.message()));
  }
  fs::remove(temporary, error);
  return tl::unexpected(written.error());
}

}  // namespace footplate
