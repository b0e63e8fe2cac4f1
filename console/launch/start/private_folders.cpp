#include "console/launch/start/private_folders.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace footplate {
namespace {

namespace fs = std::filesystem;

/// A sweep holds a lock for as long as removing takes; a second is a hundred times that.
constexpr int kAttempts = 200;
constexpr std::chrono::milliseconds kBetweenAttempts{5};

std::string user() {
  return std::to_string(::getuid());
}

/// Ours, a folder, closed to others: /tmp is everybody's, and a name in it may have been taken.
Result<void> make_private(const fs::path& folder) {
  struct stat info {};
  bool there = false;
  for (int attempt = 0; attempt < kAttempts && !there; ++attempt) {
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return fail(ErrorKind::failed, "can't make " + folder.string() + ": " + std::strerror(errno));
    there = ::lstat(folder.c_str(), &info) == 0 || errno != ENOENT;  // else it was swept away meanwhile
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::getuid())
    return fail(ErrorKind::failed,
                folder.string() + " belongs to another user or is no folder; ask its owner to remove it");
  if ((info.st_mode & 0777) != 0700 && ::chmod(folder.c_str(), 0700) != 0)
    return fail(ErrorKind::failed, "can't close " + folder.string() + " to others: " + std::strerror(errno));
  return {};
}

int open_folder(const fs::path& folder) {
  return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/// `path` still names what is open as `descriptor`.
bool is_at(const fs::path& path, int descriptor) {
  struct stat named {};
  struct stat opened {};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(descriptor, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

/// The folder at `path`, made and locked. Before the lock is ours, another process may sweep the folder away
/// as abandoned: then it is made once more.
Result<int> make_locked(const fs::path& path) {
  std::string why;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (auto made = make_private(path); !made) return tl::unexpected(made.error());
    const int lock = open_folder(path);
    if (lock >= 0 && ::flock(lock, LOCK_EX | LOCK_NB) == 0) {
      if (is_at(path, lock)) return lock;
      why = "it is removed again and again";
    } else {
      why = std::strerror(errno);
    }
    if (lock >= 0) ::close(lock);
    std::this_thread::sleep_for(kBetweenAttempts);
  }
  return fail(ErrorKind::failed, "can't lock " + path.string() + ": " + why);
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
  if (auto made = make_private(base); !made) return tl::unexpected(made.error());
  auto lock = make_locked(temporary);
  if (!lock) return lock;
  // Only now: with the lock, nobody sweeps it away.
  if (auto made = make_private(shared_memory); !made) {
    ::close(*lock);
    return tl::unexpected(made.error());
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
    // Another sweep may have removed it, and its run made it again, since it was opened here.
    if (::flock(lock, LOCK_EX | LOCK_NB) == 0 && is_at(entry->path(), lock))
      PrivateFolders::of(entry->path().stem().string()).remove();
    ::close(lock);
  }
}

}  // namespace footplate
