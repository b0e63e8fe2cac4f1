// footplate stop: orders the end of a run and waits for it.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <thread>

#include "console/cli/commands.h"
#include "console/cli/via.h"
#include "console/client/link/find_run.h"
#include "console/client/link/run_connection.h"
#include "console/client/render/render.h"
#include "console/client/render/text.h"
#include "console/client/runs/process_table.h"
#include "console/launch/supervise/start_watch.h"
#include "protocol/user_name.h"
#include "protocol/value.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kLook = 20ms;
constexpr double kLeastForOrder_s = 30;  ///< a run that isn't waited for may still come to it
constexpr auto kWithdrawn = 10s;         ///< within it the console answers that an order came too late
constexpr auto kPatience = 10s;          ///< an end that takes longer is told about
constexpr auto kLastWords = 5s;          ///< of a supervisor whose stdout is read slowly, and a bit more

struct StopOptions {
  std::string run;
  bool resumable = false;
  bool no_save = false;
  bool now = false;
  double timeout_s = 600;
};

std::string or_now(const RunRecord& run) {
  return "; without an order, and without a checkpoint, it ends with: footplate stop --now " + run.name();
}

/// A run that is starting has no console yet, and may never get one.
Result<Connection> reach_console(const RunRecord& run, steady_clock::time_point deadline) {
  const bool starting = is_starting(run);
  if (starting)
    std::fprintf(stderr, "footplate: run %s is %s; waiting for its console, %lld s at most\n",
                 run.name().c_str(), printable(start_status(run).note).c_str(),
                 static_cast<long long>(kConsoleStarts.count()));
  return connect_to(run.directory.string(), deadline, starting ? kConsoleStarts : kConsoleReturns);
}

/// What came of the order to stop, where the ranks haven't agreed.
Error not_agreed(const RunRecord& run, const OrderReport& report) {
  return {report.state == OrderState::refused ? ErrorKind::refused : ErrorKind::timed_out,
          "run " + run.name() + " isn't stopped, its order was " + std::string(to_string(report.state)) +
              (report.error.empty() ? "" : ": " + report.error) + or_now(run)};
}

Result<void> order_stop(const RunRecord& run, const StopOptions& options, steady_clock::time_point deadline) {
  auto connection = reach_console(run, deadline);
  if (!connection) return fail(connection.error().kind, connection.error().message + or_now(run));
  const Json arguments = {{"save", !options.no_save},
                          {"resumable", options.resumable},
                          {"reason", "footplate stop, by " + user_name()},
                          {"force", true}};
  const auto report = connection->request_as<OrderReport>(
      {"call",
       {{"action", "run.stop"},
        {"arguments", arguments},
        {"timeout_s", std::max(kLeastForOrder_s, options.timeout_s)}}},
      options.timeout_s < kLeastForOrder_s ? deadline : deadline + kWithdrawn);
  if (!report && report.error().kind == ErrorKind::timed_out)
    return fail(ErrorKind::timed_out,
                "run " + run.name() + " was told to stop, and the ranks haven't agreed " + "within " +
                    shortest(options.timeout_s) + " s; it stops once they do" + or_now(run));
  if (!report) return tl::unexpected(report.error());
  const bool agreed = report->state == OrderState::applied || report->state == OrderState::committed;
  if (!agreed) return tl::unexpected(not_agreed(run, *report));
  return {};
}

/// Once: an end that takes long is a large checkpoint, or a rank that hangs.
void be_patient(const RunRecord& run, steady_clock::time_point ordered, bool& told) {
  if (told || steady_clock::now() - ordered < kPatience) return;
  told = true;
  std::fprintf(stderr, "footplate: run %s has agreed to stop and is still %s; see: footplate status %s%s\n",
               run.name().c_str(), run.state().c_str(), run.name().c_str(), or_now(run).c_str());
}

/// The supervisor kills the ranks.
Result<void> stop_at_once(const RunRecord& run) {
  if (run.launcher_elsewhere()) {
    const std::string& host = run.run.launcher_host.empty() ? run.host() : run.run.launcher_host;
    return fail(ErrorKind::failed, "the supervisor of " + run.name() +
                                       ", which ends it at once, is on host " + host +
                                       "; there: footplate stop " + run.name() + " --now");
  }
  if (!is_footplate_process(run.launcher(), run.run.launcher_started))
    return fail(ErrorKind::failed,
                "the supervisor of " + run.name() + " is gone; its ranks save and stop by themselves");
  ::kill(run.launcher(), SIGQUIT);
  return {};
}

/// Between two starts nobody takes an order, and the supervisor hears of a signal.
bool is_between_starts(const RunRecord& run) {
  return is_starting(run) && !run.run.starts_at.empty() && !run.launcher_elsewhere() &&
         is_footplate_process(run.launcher(), run.run.launcher_started);
}

/// Its last words take it a moment; after that the run's name is free.
void wait_for_supervisor(const RunRecord& run) {
  const auto end = steady_clock::now() + kLastWords;
  while (!run.launcher_elsewhere() && is_footplate_process(run.launcher(), run.run.launcher_started) &&
         steady_clock::now() < end)
    std::this_thread::sleep_for(kLook);
}

Result<int> stop(const StopOptions& options) {
  auto run = find_run(options.run, Wanted::live);
  if (!run) return tl::unexpected(run.error());
  if (run->life != Life::live) return tl::unexpected(not_live(*run));
  const auto deadline = steady_clock::now() + std::chrono::duration_cast<steady_clock::duration>(
                                                  std::chrono::duration<double>(options.timeout_s));
  Result<void> ordered;
  if (options.now)
    ordered = stop_at_once(*run);
  else if (is_between_starts(*run))
    ::kill(run->launcher(), SIGTERM);
  else
    ordered = order_stop(*run, options, deadline);
  if (!ordered) return tl::unexpected(ordered.error());
  const auto directory = run->directory;
  const auto since = steady_clock::now();
  bool told = options.now;
  while (run && run->life == Life::live) {
    if (steady_clock::now() >= deadline)
      return fail(ErrorKind::timed_out, "run " + run->name() + " was told to stop and is still there after " +
                                            shortest(options.timeout_s) + " s; see: footplate status " +
                                            run->name() + (options.now ? "" : or_now(*run)));
    be_patient(*run, since, told);
    std::this_thread::sleep_for(kLook);
    run = read_run(directory);
  }
  if (!run) return tl::unexpected(run.error());
  wait_for_supervisor(*run);
  std::printf("%s\n", for_output(run->name() + " " + run->outcome(), STDOUT_FILENO).c_str());
  return 0;
}

}  // namespace

Handler declare_stop(CLI::App& command) {
  auto options = std::make_shared<StopOptions>();
  command.add_option("RUN", options->run, "name or path; left out: the only live run");
  command.add_flag("--resumable", options->resumable,
                   "the run's exit code is 75: whoever started it goes on with it");
  command.add_flag("--no-save", options->no_save, "without a checkpoint");
  command.add_flag("--now", options->now, "kill it, without an order and without a checkpoint");
  command.add_option("--timeout", options->timeout_s, "seconds to wait for the end (600); then exit code 6")
      ->check(CLI::Range(0.0, 1e6));
  return with_via(
      command, [options]() -> const std::string& { return options->run; },
      [options] { return stop(*options); });
}

}  // namespace footplate
