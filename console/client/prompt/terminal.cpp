#include "console/client/prompt/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "console/client/render/text.h"

namespace footplate {
namespace {

constexpr std::array kSignals{SIGINT, SIGWINCH, SIGTSTP, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD};

sigset_t signals_to_read() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kSignals) sigaddset(&set, number);
  return set;
}

winsize size_of_terminal() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

constexpr const char* kYellow = "\x1b[33m";

/// By what a line means.
const char* color_of(Terminal::Kind kind, std::string_view line) {
  const auto has = [&](std::string_view part) { return line.find(part) != std::string_view::npos; };
  switch (kind) {
    case Terminal::Kind::value:
      return "";
    case Terminal::Kind::talk:
      if (line.starts_with("warning:")) return kYellow;
      return has(", applied at step ") || has(", new communicators at step ") ? "\x1b[32m" : "";
    case Terminal::Kind::event:
      return line.starts_with("warning:") || line.starts_with("silent: ") ? kYellow : "\x1b[2m";
    case Terminal::Kind::warning:
      return kYellow;
    case Terminal::Kind::error:
      return "\x1b[31m";
  }
  return "";
}

}  // namespace

Terminal::Terminal(Background& background) : background_(background) {
  const sigset_t set = signals_to_read();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool plain = term == nullptr || *term == '\0' || std::strcmp(term, "dumb") == 0;
  color_ = ::isatty(STDOUT_FILENO) == 1 && !plain && (no_color == nullptr || *no_color == '\0');
}

Terminal::~Terminal() {
  // One that comes while this ends isn't to end the process: it still has an exit code to give.
  for (signalfd_siginfo late; ::read(signals_, &late, sizeof(late)) == static_cast<ssize_t>(sizeof(late));) {
  }
  ::close(signals_);
  const sigset_t set = signals_to_read();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

std::size_t Terminal::width() const {
  constexpr std::size_t kUsual = 80;
  const winsize size = size_of_terminal();
  return size.ws_col > 1 ? size.ws_col : kUsual;
}

std::size_t Terminal::height() const {
  constexpr std::size_t kUsual = 24;
  const winsize size = size_of_terminal();
  return size.ws_row > 1 ? size.ws_row : kUsual;
}

Terminal::Woken Terminal::wait(bool with_keys) {
  switch (next_event(with_keys)) {
    case Event::interrupt:
      return Woken::interrupted;
    case Event::ended:
      return Woken::ended;
    default:
      return Woken::something;
  }
}

Terminal::Event Terminal::next_event(bool with_keys, std::chrono::milliseconds longest) {
  if (ended_) return Event::ended;
  std::array<pollfd, 3> ready{{{signals_, POLLIN, 0},
                               {background_.descriptor(), POLLIN, 0},
                               {with_keys ? STDIN_FILENO : -1, POLLIN, 0}}};
  const auto patience = std::min(background_.patience(), longest);
  const int count = ::poll(ready.data(), ready.size(), static_cast<int>(std::max<long>(0, patience.count())));
  if (count < 0 && errno != EINTR) return Event::ended;
  if (count > 0 && ready[0].revents != 0) return take_signal();
  if (count <= 0 || ready[1].revents != 0) background_.look();
  return count > 0 && ready[2].revents != 0 ? Event::keys : Event::nothing;
}

Terminal::Event Terminal::take_signal() {
  signalfd_siginfo info{};
  if (::read(signals_, &info, sizeof(info)) != static_cast<ssize_t>(sizeof(info))) return Event::nothing;
  switch (static_cast<int>(info.ssi_signo)) {
    case SIGINT:
      return Event::interrupt;
    case SIGWINCH:
      resized();
      return Event::nothing;
    case SIGTSTP:
      suspend();
      return Event::nothing;
    case SIGCHLD:  // a pager's end only has to wake us
      return Event::nothing;
    default:
      ended_ = true;
      return Event::ended;
  }
}

void Terminal::suspend() {
  ::kill(::getpid(), SIGSTOP);  // TSTP itself is blocked
}

std::string Terminal::styled(std::string_view text, Kind kind) const {
  std::string shown = in_locale(printable(text));
  while (!shown.empty() && shown.back() == '\n') shown.pop_back();
  if (!color_) return shown + "\n";
  std::string colored;
  for (std::size_t start = 0; start <= shown.size();) {
    const std::size_t end = std::min(shown.find('\n', start), shown.size());
    const std::string line = shown.substr(start, end - start);
    const std::string color = color_of(kind, line);
    colored += color.empty() ? line + "\n" : color + line + "\x1b[0m\n";
    start = end + 1;
  }
  return colored;
}

}  // namespace footplate
