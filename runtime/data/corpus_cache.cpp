#include "runtime/data/corpus_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

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

/// What would help where a file of so many bytes can't be written.
std::string remedy(int cause, const fs::path& folder, std::optional<std::uintmax_t> bytes) {
  const auto mb = [](std::uintmax_t count) { return static_cast<double>(count) / 1e6; };
  std::string text = cause == EFBIG ? " (a limit on the size of files is set: ulimit -f)" : "";
  if (bytes) text += fmt::format("; it takes {:.1f} MB", mb(*bytes));
  std::error_code error;
  if (const auto space = fs::space(folder, error); !error)
    text += fmt::format("; {:.1f} MB are free there", mb(space.available));
  return text + "; make room, or set FOOTPLATE_CACHE to another folder";
}

/// While it lives this process alone writes to the folder, of those on this host at least. Where the file
/// system has no locks several may, each to a file of its own.
class FolderLock {
 public:
  explicit FolderLock(const fs::path& folder)
      : fd_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~FolderLock() {
    if (fd_ >= 0) ::close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  const int fd_;
};

/// What a process left that was killed while it wrote. Another host may be at a newer one.
void remove_left_behind(const fs::path& folder, const std::string& prefix) {
  constexpr std::chrono::hours kAbandoned{1};
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (!entry->path().filename().string().starts_with(prefix)) continue;
    const auto written = fs::last_write_time(entry->path(), ignored);
    if (!ignored && fs::file_time_type::clock::now() - written > kAbandoned)
      fs::remove(entry->path(), ignored);
  }
}

}  // namespace

Result<fs::path> cached_corpus_path(const std::string& name) {
  const auto folder = cache_folder();
  return folder ? Result<fs::path>(*folder / name) : tl::unexpected(folder.error());
}

Result<fs::path> cached_corpus(const std::string& name, std::optional<std::uintmax_t> bytes,
                               const std::function<Result<void>(const TakeBytes&)>& write) {
  const auto folder = cache_folder();
  if (!folder) return tl::unexpected(folder.error());
  const fs::path path = *folder / name;
  std::error_code error;
  // One of another size was cut short by a full disk: earlier versions didn't notice.
  const auto is_there = [&] {
    const auto has = fs::file_size(path, error);
    return !error && has == bytes.value_or(has);
  };
  if (is_there()) return path;

  // Of hosts that start together each may write its own, and the last rename wins.
  const std::string unfinished = name + ".tmp-";
  const fs::path temporary = *folder / fmt::format("{}{:08x}", unfinished, std::random_device{}());
  const auto cant = [&](const char* what, int cause) {
    return fail(ErrorKind::failed, fmt::format("data.corpus: can't {} {}: {}{}", what, temporary.string(),
                                               std::strerror(cause), remedy(cause, *folder, bytes)));
  };
  fs::create_directories(*folder, error);
  if (error) return cant("make the folder of", error.value());
  const FolderLock lock(*folder);
  if (is_there()) return path;  // another rank of this host has written it
  remove_left_behind(*folder, unfinished);
  FILE* out = std::fopen(temporary.c_str(), "wbxe");
  if (out == nullptr) return cant("make", errno);
  auto written = write([&](std::string_view some) -> Result<void> {
    if (std::fwrite(some.data(), 1, some.size(), out) != some.size()) return cant("write", errno);
    return {};
  });
  // Else a crash could leave the name on the disk and not the text.
  if (written && (std::fflush(out) != 0 || fsync(fileno(out)) != 0)) written = cant("write", errno);
  if (std::fclose(out) != 0 && written) written = cant("write", errno);
  if (written) {
    fs::rename(temporary, path, error);
    if (!error) return path;
    written = cant("rename", error.value());
  }
  fs::remove(temporary, error);
  return tl::unexpected(written.error());
}

}  // namespace footplate
