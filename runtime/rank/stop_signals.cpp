#include "runtime/rank/stop_signals.h"

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

#include "runtime/stacks/thread_stacks.h"

namespace footplate {
namespace {

/// What mpirun hands on (SIGUSR2, from `footplate run`), and what comes to every process of a job.
constexpr std::array kStopSignals{SIGUSR2, SIGTERM};

/// What their handler reaches. A signal that comes before there is a control is remembered.
std::atomic<Control*> g_control{nullptr};
std::atomic<bool> g_stop_wanted{false};
/// Handlers at work, on any thread: the control they may have fetched has to live until none is.
std::atomic<int> g_handlers{0};

void ask_to_stop(Control& control) {
  control.request_stop("signal", /*resumable=*/true);
}

/// Save and stop (docs/batch.md, "Signals").
void on_stop_signal(int /*signal*/) {
  ++g_handlers;
  g_stop_wanted = true;
  if (Control* control = g_control) ask_to_stop(*control);
  --g_handlers;
}

}  // namespace

void install_signal_handlers() {
  // SIGXFSZ: a limit on the size of files is an error of the write, as a full disk is.
  for (const int signal : {SIGINT, SIGHUP, SIGUSR1, SIGPIPE, SIGXFSZ}) std::signal(signal, SIG_IGN);
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  for (const int signal : kStopSignals) sigaction(signal, &action, nullptr);
  sigset_t held;  // of a rank that has no mpirun (console/launch/start/child.cpp)
  sigemptyset(&held);
  for (const int signal : {SIGTERM, SIGHUP, SIGINT}) sigaddset(&held, signal);
  sigprocmask(SIG_UNBLOCK, &held, nullptr);
  prepare_stacks();
}

void let_signals_reach(Control& control) {
  g_control = &control;
  if (g_stop_wanted) ask_to_stop(control);
}

/// One that fetched it before was counted before it did (both are sequentially consistent), and takes
/// microseconds.
void let_no_signal_reach_control() {
  for (const int signal : kStopSignals) std::signal(signal, SIG_IGN);
  g_control = nullptr;
  while (g_handlers > 0) std::this_thread::yield();
}

}  // namespace footplate
