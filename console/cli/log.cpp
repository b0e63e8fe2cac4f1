// footplate log: the lines that a run has printed, and those it will.
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <limits>
#include <memory>

#include "console/cli/commands.h"
#include "console/cli/print_text.h"
#include "console/client/link/find_run.h"
#include "console/client/render/render.h"
#include "console/client/render/text.h"
#include "console/launch/run_dir/run_logs.h"
#include "console/launch/start/file_tail.h"
#include "console/launch/supervise/start_watch.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLook = 500ms;  ///< how often `-f` sees whether the run has ended

struct LogOptions {
  std::string run;
  bool follow = false;
  std::size_t last = 0;  ///< 0: all
};

bool print_new(FileTail& tail) {
  for (std::string text = tail.lines(); !text.empty(); text = tail.lines())
    if (!print_text(text)) return false;
  return true;
}

/// Until the run has ended; false once nobody reads.
bool follow(const RunRecord& run, FileTail& tail) {
  for (bool live = true; live;) {
    pollfd ready{tail.fd(), POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(kLook.count()));
    const auto now = read_run(run.directory);
    live = now && now->life == Life::live;  // looked at before reading, so that the last lines are read
    if (!print_new(tail)) return false;
  }
  return true;
}

/// A run that hangs in its start has printed nothing: what is known of it is said instead.
void tell_of_start(const RunRecord& run) {
  if (!is_starting(run)) return;
  std::fprintf(stderr, "footplate: run %s is %s; see: footplate status %s, and %s\n", run.name().c_str(),
               printable(start_status(run).note).c_str(), run.name().c_str(),
               launcher_log(run.directory).c_str());
}

Result<int> show(const LogOptions& options) {
  const auto run = find_run(options.run, Wanted::any);
  if (!run) return tl::unexpected(run.error());
  tell_of_start(*run);
  std::filesystem::path path = batch_log(run->directory);
  std::error_code error;
  if (!std::filesystem::exists(path, error)) path = run->directory / "log" / "rank-0.log";
  if (!std::filesystem::exists(path, error))
    return fail(ErrorKind::failed, "run " + run->name() + " has no log yet: neither " +
                                       batch_log(run->directory).string() + " nor " + path.string());
  ::signal(SIGPIPE, SIG_IGN);
  FileTail tail(path, options.last > 0 ? offset_of_last_lines(path, options.last) : 0);
  bool read = print_new(tail);
  if (read && options.follow && run->life == Life::live) read = follow(*run, tail);
  read = read && print_text(tail.rest());
  return read ? 0 : unwritten("the log", errno);
}

}  // namespace

Handler declare_log(CLI::App& command) {
  auto options = std::make_shared<LogOptions>();
  command.add_option("RUN", options->run, "name or path; left out: the only live run, else the newest");
  command.add_flag("-f,--follow", options->follow, "go on until the run ends");
  command.add_option("-n,--lines", options->last, "only the last so many lines");
  return [options] { return show(*options); };
}

}  // namespace footplate
