#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "console/host/run/connection.h"
#include "protocol/subprocess.h"

namespace footplate::host {

/// Collects killed children when they have ended, without ever waiting for one.
class Reaper {
 public:
  void adopt(Subprocess child) { children_.push_back(std::move(child)); }
  void reap() {
    std::erase_if(children_, [](Subprocess& child) { return child.ended(); });
  }

 private:
  std::vector<Subprocess> children_;
};

/// One footplate-lua process in a process group of its own, with its socketpair; killed when this goes.
class LuaProcess {
 public:
  /// `program` is its path; `reaper` outlives it. Errors: the operating system's.
  static Result<std::unique_ptr<LuaProcess>> start(const std::filesystem::path& program,
                                                   std::size_t unread_limit, Reaper& reaper);

  LuaProcess(Subprocess process, Connection connection, Reaper& reaper)
      : process_(std::move(process)), connection_(std::move(connection)), reaper_(reaper) {}
  LuaProcess(const LuaProcess&) = delete;
  LuaProcess& operator=(const LuaProcess&) = delete;
  ~LuaProcess();

  pid_t pid() const { return process_.pid(); }
  Connection& connection() { return connection_; }

  void kill() { process_.signal(SIGKILL); }

  /// How it ended, if it has: "signal 9", "exit code 1".
  std::optional<std::string> ended();

  /// Processor time of all its threads so far; nothing where the process is gone.
  std::optional<std::chrono::nanoseconds> cpu_time();

 private:
  Subprocess process_;
  Connection connection_;
  Reaper& reaper_;
};

}  // namespace footplate::host
