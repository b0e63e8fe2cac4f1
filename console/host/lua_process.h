#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "console/host/connection.h"

namespace footplate::host {

/// Collects killed children when they have ended, without ever waiting for one.
class Reaper {
 public:
  void adopt(pid_t pid) { pids_.push_back(pid); }
  void reap();

 private:
  std::vector<pid_t> pids_;
};

/// One footplate-lua process in a process group of its own, with its socketpair; killed when this goes.
class LuaProcess {
 public:
  /// `program` is its path; `reaper` outlives it. Errors: the operating system's.
  static Result<std::unique_ptr<LuaProcess>> start(const std::filesystem::path& program,
                                                   std::size_t unread_limit, Reaper& reaper);

  LuaProcess(pid_t pid, Connection connection, Reaper& reaper)
      : pid_(pid), connection_(std::move(connection)), reaper_(reaper) {}
  LuaProcess(const LuaProcess&) = delete;
  LuaProcess& operator=(const LuaProcess&) = delete;
  ~LuaProcess();

  pid_t pid() const { return pid_; }
  Connection& connection() { return connection_; }

  void kill();

  /// How it ended, if it has: "signal 9", "exit code 1".
  std::optional<std::string> ended();

  /// Processor time of all its threads so far; nothing where the process is gone.
  std::optional<std::chrono::nanoseconds> cpu_time() const;

 private:
  pid_t pid_;
  Connection connection_;
  Reaper& reaper_;
  bool reaped_ = false;
  std::string how_;
};

}  // namespace footplate::host
