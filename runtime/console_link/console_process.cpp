#include "runtime/console_link/console_process.h"

#include <signal.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>

#include "protocol/console_mark.h"

namespace footplate {
namespace {

/// Unless the system itself hangs (a console that waits for a dead disk): then it is left to init.
constexpr std::chrono::milliseconds kKillTakes{500};

}  // namespace

Result<std::unique_ptr<ConsoleProcess>> ConsoleProcess::start(const std::filesystem::path& program,
                                                              const std::filesystem::path& run_directory,
                                                              int log) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return fail(ErrorKind::failed, std::string("socketpair for the console: ") + std::strerror(errno));
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  SpawnOptions options;
  options.program = program;
  options.arguments = {"--run-dir", run_directory.string()};
  options.environment = {kConsoleMark};
  if (log >= 0) options.err = log;
  options.socket = theirs.get();
  options.own_group = true;
  auto process = Subprocess::start(options);
  if (!process)
    return fail(ErrorKind::failed, "can't start the console, " + process.error().message +
                                       " (is it installed beside footplate-rank?)");
  return std::unique_ptr<ConsoleProcess>(new ConsoleProcess(*std::move(process), std::move(ours)));
}

void ConsoleProcess::kill() {
  if (process_.ended()) return;
  process_.signal(SIGKILL);
  await_end(kKillTakes);
}

bool ConsoleProcess::await_end(std::chrono::milliseconds at_most) {
  ::shutdown(socket_.get(), SHUT_WR);
  return process_.await_end(at_most);
}

}  // namespace footplate
