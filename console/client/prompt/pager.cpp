#include "console/client/prompt/pager.h"

#include <spawn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string>

#include "protocol/fd.h"

extern char** environ;

namespace footplate {
namespace {

/// The text as a file that only its reader has: a pipe would have to be filled while the pager runs.
Fd file_of(std::string_view text) {
  Fd file(::memfd_create("footplate-help", MFD_CLOEXEC));
  if (!file) return file;
  for (std::size_t written = 0; written < text.size();) {
    const ssize_t count = ::write(file.get(), text.data() + written, text.size() - written);
    if (count <= 0) return Fd();
    written += static_cast<std::size_t>(count);
  }
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

/// Of the terminal's foreground group, so that it may read from it, and without the signals that this process
/// blocks.
std::optional<Subprocess> start_shell(const std::string& command, int in) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::string shell = "sh", option = "-c", text = command;
  const std::array<char*, 4> arguments{shell.data(), option.data(), text.data(), nullptr};
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, "/bin/sh", &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  return error == 0 ? std::optional<Subprocess>(std::in_place, pid) : std::nullopt;
}

}  // namespace

std::optional<Subprocess> start_pager(std::string_view text) {
  const Fd file = file_of(text);
  if (!file) return std::nullopt;
  ::setenv("LESS", "FRX", /*replace=*/0);  // a short text needs no key, and what was read stays
  const char* pager = std::getenv("PAGER");
  const bool given = pager != nullptr && *pager != '\0';
  return start_shell(given ? pager : "exec less 2>/dev/null || exec more 2>/dev/null || exec cat",
                     file.get());
}

}  // namespace footplate
