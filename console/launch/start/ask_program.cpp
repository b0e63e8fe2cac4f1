#include "console/launch/start/ask_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "protocol/fd.h"
#include "protocol/subprocess.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

/// What the program reads as its stdin.
Fd input_file(const std::string& text) {
  Fd file(::memfd_create("question", MFD_CLOEXEC));
  const int fd = file.get();
  for (std::size_t sent = 0; fd >= 0 && sent < text.size();) {
    const ssize_t count = ::write(fd, text.data() + sent, text.size() - sent);
    if (count < 0 && errno != EINTR) break;
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
  if (fd >= 0) ::lseek(fd, 0, SEEK_SET);
  return file;
}

/// Everything the process prints, into `text`. False: it hasn't ended within that time.
bool read_all(int fd, std::chrono::seconds at_most, std::string& text) {
  const auto end = std::chrono::steady_clock::now() + at_most;
  std::array<char, 65536> bytes;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd ready{fd, POLLIN, 0};
    if (left <= 0 || (::poll(&ready, 1, static_cast<int>(left)) == 0)) return false;
    const ssize_t count = ::read(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return true;
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
  Fd in = input_file(input);
  std::array<int, 2> pipe{};
  if (!in || ::pipe2(pipe.data(), O_CLOEXEC) != 0)
    return fail(ErrorKind::failed, "can't start " + program.string() + ": " + std::strerror(errno));
  const Fd answer(pipe[0]);
  Fd answers(pipe[1]);
  SpawnOptions options;
  options.program = program;
  options.arguments = arguments;
  options.in = in.get();
  (heard == STDOUT_FILENO ? options.out : options.err) = answers.get();
  auto child = Subprocess::start(options);
  if (!child) return fail(ErrorKind::failed, "can't start " + child.error().message);
  in = Fd();
  answers = Fd();  // the child has the only end: its end is the answer's
  ProgramAnswer said;
  said.in_time = read_all(answer.get(), at_most, said.text);
  if (!said.in_time) child->signal(SIGKILL);
  child->await_end();
  const int status = child->wait_status();
  said.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (said.in_time && WIFSIGNALED(status)) said.signal = WTERMSIG(status);
  return said;
}

}  // namespace footplate
