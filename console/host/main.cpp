// footplate-console: started by rank 0, with the socketpair to it as descriptor 3. docs/protocol.md has what
// it speaks.

#include <fcntl.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>

#include "console/host/loop/console.h"
#include "protocol/exit_codes.h"
#include "protocol/layout.h"

namespace footplate::host {
namespace {

/// Readable when somebody wants the console to end; its children still see the default signals.
int end_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

int run(int count, char** arguments) {
  ConsoleOptions options;
  std::vector<std::string> limits;
  std::string role = "admin";
  CLI::App app{"The console of a footplate run; rank 0 starts it, with their socketpair as descriptor 3."};
  app.add_option("--run-dir", options.run_directory, "run directory, for journal.lua")->required();
  app.add_option("--limit", limits,
                 "change a limit, as in chunk_s=0.5 (console/host/run/session_limits.h has them)");
  app.add_option("--role", role, "what clients may do: view, operate or admin");
  try {
    app.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ExitCode::usage);
  }
  const auto usage = [](const Error& error) {
    std::fprintf(stderr, "footplate-console: %s\n", error.message.c_str());
    return static_cast<int>(ExitCode::usage);
  };
  for (const auto& limit : limits)
    if (auto set = options.limits.set(limit); !set) return usage(set.error());
  const auto known = role_from_string(role);
  if (!known) return usage(known.error());
  options.role = *known;
  if (fcntl(options.rank_fd, F_SETFD, FD_CLOEXEC) != 0)
    return usage(
        {ErrorKind::usage, "descriptor 3 is not open: this program is started by rank 0, see footplate run"});
  options.lua_program = find_part(Part::lua, own_folder());
  options.signal_fd = end_signals();
  return Console(std::move(options)).run();
}

}  // namespace
}  // namespace footplate::host

int main(int count, char** arguments) {
  spdlog::set_default_logger(spdlog::stderr_logger_st("console"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  try {
    return footplate::host::run(count, arguments);
  } catch (const std::exception& error) {
    spdlog::critical("{}", error.what());
    return static_cast<int>(footplate::ExitCode::failed);
  }
}
