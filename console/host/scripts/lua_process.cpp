#include "console/host/scripts/lua_process.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace footplate::host {

Result<std::unique_ptr<LuaProcess>> LuaProcess::start(const std::filesystem::path& program,
                                                      std::size_t unread_limit, Reaper& reaper) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
    return fail(ErrorKind::failed, std::string("can't make a socketpair: ") + std::strerror(errno));
  Fd ours(pair[0]);
  const Fd theirs(pair[1]);
  SpawnOptions options;
  options.program = program;
  options.name = program.filename();
  options.err = SpawnOptions::kInherited;  // the console's log
  options.socket = theirs.get();
  options.own_group = true;  // so that a job's children can be told from the console's
  auto process = Subprocess::start(options);
  if (!process) return fail(ErrorKind::failed, "can't start " + process.error().message);
  return std::make_unique<LuaProcess>(*std::move(process), Connection(std::move(ours), unread_limit), reaper);
}

LuaProcess::~LuaProcess() {
  kill();
  if (!process_.ended()) reaper_.adopt(std::move(process_));
}

std::optional<std::string> LuaProcess::ended() {
  if (!process_.ended()) return std::nullopt;
  const int status = process_.wait_status();
  return WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                             : "exit code " + std::to_string(WEXITSTATUS(status));
}

std::optional<std::chrono::nanoseconds> LuaProcess::cpu_time() {
  clockid_t clock{};
  timespec time{};
  if (process_.ended() || ::clock_getcpuclockid(pid(), &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return std::nullopt;
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace footplate::host
