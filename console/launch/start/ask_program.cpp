#include "console/launch/start/ask_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

namespace footplate {
namespace {

namespace fs = std::filesystem;

/// What the program reads as its stdin.
int input_file(const std::string& text) {
  const int fd = ::memfd_create("question", MFD_CLOEXEC);
  for (std::size_t sent = 0; fd >= 0 && sent < text.size();) {
    const ssize_t count = ::write(fd, text.data() + sent, text.size() - sent);
    if (count < 0 && errno != EINTR) break;
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
  if (fd >= 0) ::lseek(fd, 0, SEEK_SET);
  return fd;
}

Result<pid_t> start(const fs::path& program, std::vector<std::string> words, int in, int out, int heard) {
  const int unheard = heard == STDOUT_FILENO ? STDERR_FILENO : STDOUT_FILENO;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, heard);
  posix_spawn_file_actions_addopen(&actions, unheard, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  const std::string name = program.string();
  words.insert(words.begin(), name);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, name.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail(ErrorKind::failed, "can't start " + name + ": " + std::strerror(error));
  return pid;
}

/// Everything the process prints until it ends, or nothing where it takes too long.
std::optional<std::string> read_all(int fd, std::chrono::seconds at_most) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  std::string text;
  std::array<char, 65536> bytes;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd ready{fd, POLLIN, 0};
    if (left <= 0 || (::poll(&ready, 1, static_cast<int>(left)) == 0)) return std::nullopt;
    const ssize_t count = ::read(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
}

std::optional<fs::path> find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const auto colon = rest.find(':');
    const std::string folder = rest.substr(0, colon);
    rest = colon == std::string::npos ? "" : rest.substr(colon + 1);
    if (!folder.empty() && is_program(fs::path(folder) / name)) return fs::path(folder) / name;
  }
  return std::nullopt;
}

Result<ProgramAnswer> ask_program(const fs::path& program, const std::vector<std::string>& arguments,
                                  const std::string& input, int heard, std::chrono::seconds at_most) {
  const int in = input_file(input);
  std::array<int, 2> pipe{};
  if (in < 0 || ::pipe2(pipe.data(), O_CLOEXEC) != 0)
    return fail(ErrorKind::failed, "can't start " + program.string() + ": " + std::strerror(errno));
  const auto pid = start(program, arguments, in, pipe[1], heard);
  ::close(in);
  ::close(pipe[1]);
  std::optional<std::string> text;
  if (pid) text = read_all(pipe[0], at_most);
  ::close(pipe[0]);
  if (!pid) return tl::unexpected(pid.error());
  if (!text) ::kill(*pid, SIGKILL);
  int status = 0;
  while (::waitpid(*pid, &status, 0) < 0 && errno == EINTR) continue;
  return ProgramAnswer{text.value_or(""), WIFEXITED(status) ? WEXITSTATUS(status) : -1, text.has_value()};
}

}  // namespace footplate
