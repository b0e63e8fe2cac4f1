#include "console/launch/private_folders.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace footplate {
namespace {

namespace fs = std::filesystem;

std::string user() {
  return std::to_string(::getuid());
}

/// Ours, a folder, closed to others: /tmp is everybody's, and a name in it may have been taken.
Result<void> make_private(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(ErrorKind::failed, "can't make " + folder.string() + ": " + std::strerror(errno));
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::getuid())
    return fail(ErrorKind::failed,
                folder.string() + " belongs to another user or is no folder; ask its owner to remove it");
  if ((info.st_mode & 0777) != 0700 && ::chmod(folder.c_str(), 0700) != 0)
    return fail(ErrorKind::failed, "can't close " + folder.string() + " to others: " + std::strerror(errno));
  return {};
}

int open_folder(const fs::path& folder) {
  return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

}  // namespace

PrivateFolders PrivateFolders::of(const std::string& id) {
  PrivateFolders folders;
  folders.base = "/tmp/footplate-" + user();
  folders.socket = folders.base / (id + ".sock");
  folders.temporary = folders.base / (id + ".d");
  const bool has_shared_memory = ::access("/dev/shm", W_OK | X_OK) == 0;
  folders.shared_memory =
      has_shared_memory ? fs::path("/dev/shm/footplate-" + user() + "-" + id) : folders.temporary / "shm";
  return folders;
}

Result<int> PrivateFolders::create() const {
  for (const auto& folder : {base, temporary, shared_memory})
    if (auto made = make_private(folder); !made) return tl::unexpected(made.error());
  const int lock = open_folder(temporary);
  if (lock < 0 || ::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    const std::string why = std::strerror(errno);
    if (lock >= 0) ::close(lock);
    return fail(ErrorKind::failed, "can't lock " + temporary.string() + ": " + why);
  }
  return lock;
}

void PrivateFolders::clear() const {
  std::error_code ignored;
  fs::remove(socket, ignored);
  for (const auto& folder : {shared_memory, temporary}) {
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
      if (entry->path() != shared_memory) fs::remove_all(entry->path(), ignored);
  }
}

void PrivateFolders::remove() const {
  std::error_code ignored;
  fs::remove(socket, ignored);
  fs::remove_all(shared_memory, ignored);
  fs::remove_all(temporary, ignored);
}

void sweep_abandoned_folders() {
  std::error_code error;
  const fs::path base = PrivateFolders::of("").base;
  for (fs::directory_iterator entry(base, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() != ".d") continue;
    const int lock = open_folder(entry->path());
    if (lock < 0) continue;
    if (::flock(lock, LOCK_EX | LOCK_NB) == 0) PrivateFolders::of(entry->path().stem().string()).remove();
    ::close(lock);
  }
}

}  // namespace footplate
