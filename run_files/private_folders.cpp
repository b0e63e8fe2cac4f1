#include "run_files/private_folders.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <fstream>
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

/// The folder at `path`, made and locked, by LOCK_EX or LOCK_SH. Before the lock is ours, another process may
/// sweep the folder away as abandoned: then it is made once more.
Result<int> make_locked(const fs::path& path, int lock_kind) {
  std::string why;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (auto made = make_private(path); !made) return tl::unexpected(made.error());
    const int lock = open_folder(path);
    if (lock >= 0 && ::flock(lock, lock_kind | LOCK_NB) == 0) {
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

/// A file, or a folder with all in it. MPI's daemon makes and removes files of the same folder at any moment:
/// libstdc++'s remove_all() gives up at the first file that is gone before its turn.
void remove_tree(const fs::path& path) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::error_code error;
    fs::remove_all(path, error);
    if (error != std::errc::no_such_file_or_directory && error != std::errc::directory_not_empty) return;
  }
}

/// In a launcher's folder: that it is one.
constexpr const char* kLauncherMark = "launcher";
constexpr const char* kFolderEnding = ".d";
constexpr const char* kOrphanMark = "orphaned";
constexpr const char* kDaemonName = "prted";
constexpr std::chrono::seconds kDaemonEnds{2};

bool is_daemon(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  return pid > 1 && std::getline(file, name) && name == kDaemonName;
}

/// It ends with its mpirun, or else by a signal, and cleans up behind itself, unless it is killed.
void clear_up_after_daemon(pid_t pid, bool is_orphaned) {
  const auto end = std::chrono::steady_clock::now() + kDaemonEnds;
  for (; is_daemon(pid); std::this_thread::sleep_for(kBetweenAttempts)) {
    const bool is_late = std::chrono::steady_clock::now() > end;
    if (!is_orphaned && is_late) return;
    if (is_orphaned) ::kill(pid, is_late ? SIGKILL : SIGTERM);
  }
  const std::string left = "/tmp/" + std::string(kDaemonName) + "." + std::to_string(pid);
  struct stat info {};
  if (::lstat(left.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::getuid())
    remove_tree(left);
}

/// In the child of a fork: nobody may wait for what it has inherited.
void close_all() {
  ::setsid();
  ::prctl(PR_SET_NAME, "footplate-clear");
  const int null = ::open("/dev/null", O_RDWR);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, fd);
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
}

}  // namespace

PrivateFolders PrivateFolders::of(const std::string& id) {
  PrivateFolders folders;
  folders.base = "/tmp/footplate-" + user();
  folders.socket = folders.base / (id + ".sock");
  folders.temporary = folders.base / (id + kFolderEnding);
  const bool has_shared_memory = ::access("/dev/shm", W_OK | X_OK) == 0;
  folders.shared_memory =
      has_shared_memory ? fs::path("/dev/shm/footplate-" + user() + "-" + id) : folders.temporary / "shm";
  return folders;
}

std::string PrivateFolders::id_of(const fs::path& temporary) {
  return temporary.extension() == kFolderEnding ? temporary.stem().string() : "";
}

Result<int> PrivateFolders::create() const {
  auto lock = make(LOCK_EX);
  if (lock) ::close(::open((temporary / kLauncherMark).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  return lock;
}

bool PrivateFolders::are_launchers() const {
  return ::access((temporary / kLauncherMark).c_str(), F_OK) == 0;
}

Result<int> PrivateFolders::share() const {
  return make(LOCK_SH);
}

Result<int> PrivateFolders::make(int lock_kind) const {
  if (auto made = make_private(base); !made) return tl::unexpected(made.error());
  auto lock = make_locked(temporary, lock_kind);
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
      if (entry->path() != shared_memory && entry->path().filename() != kLauncherMark)
        remove_tree(entry->path());
  }
}

void PrivateFolders::remove() const {
  std::error_code ignored;
  fs::remove(socket, ignored);
  remove_tree(shared_memory);
  remove_tree(temporary);
}

void sweep_abandoned_folders() {
  std::error_code error;
  const fs::path base = PrivateFolders::of("").base;
  for (fs::directory_iterator entry(base, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() != kFolderEnding) continue;
    const int lock = open_folder(entry->path());
    if (lock < 0) continue;
    // Another sweep may have removed it, and its run made it again, since it was opened here.
    if (::flock(lock, LOCK_EX | LOCK_NB) == 0 && is_at(entry->path(), lock))
      PrivateFolders::of(entry->path().stem().string()).remove();
    ::close(lock);
  }
}

bool remove_when_abandoned(const PrivateFolders& folders) {
  const pid_t daemon = ::getppid();
  const pid_t child = ::fork();
  if (child != 0) return child > 0;
  close_all();
  const int lock = open_folder(folders.temporary);
  while (lock >= 0 && ::flock(lock, LOCK_EX) != 0 && errno == EINTR) {
  }
  const bool is_orphaned = ::access((folders.temporary / kOrphanMark).c_str(), F_OK) == 0;
  if (lock >= 0 && is_at(folders.temporary, lock)) folders.remove();
  clear_up_after_daemon(daemon, is_orphaned);
  ::_exit(0);
}

void mark_orphaned(const PrivateFolders& folders) {
  ::close(::open((folders.temporary / kOrphanMark).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

}  // namespace footplate
