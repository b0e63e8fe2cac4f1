#include "console/launch/start/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

namespace footplate {

Signals::Signals() {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGTERM, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD}) sigaddset(&wanted, number);
  struct sigaction hangup {};
  ::sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaddset(&wanted, SIGHUP);
  ::sigprocmask(SIG_BLOCK, &wanted, &before_);
  fd_ = ::signalfd(-1, &wanted, SFD_NONBLOCK | SFD_CLOEXEC);
}

Signals::~Signals() {
  static_cast<void>(take());  // one that came too late to matter isn't to end this process instead
  if (fd_ >= 0) ::close(fd_);
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

std::vector<int> Signals::take() {
  std::vector<int> numbers;
  signalfd_siginfo info;
  while (::read(fd_, &info, sizeof(info)) == static_cast<ssize_t>(sizeof(info)))
    if (info.ssi_signo != SIGCHLD) numbers.push_back(static_cast<int>(info.ssi_signo));
  return numbers;
}

const char* signal_name(int number) {
  switch (number) {
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGHUP:
      return "SIGHUP";
    case SIGQUIT:
      return "SIGQUIT";
    case SIGUSR1:
      return "SIGUSR1";
    case SIGUSR2:
      return "SIGUSR2";
    case SIGKILL:
      return "SIGKILL";
    case SIGSEGV:
      return "SIGSEGV";
    case SIGABRT:
      return "SIGABRT";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    default:
      return "a signal";
  }
}

}  // namespace footplate
