#include "protocol/subprocess.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <string>

#include "protocol/fd.h"

namespace footplate {
namespace {

using std::chrono::seconds;

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    out = Fd(ends[0]);
    in = Fd(ends[1]);
  }
  /// All that is written until the last end is closed.
  std::string read_all() {
    in = Fd();
    std::string text;
    std::array<char, 4096> bytes{};
    for (ssize_t count; (count = ::read(out.get(), bytes.data(), bytes.size())) > 0;)
      text.append(bytes.data(), static_cast<std::size_t>(count));
    return text;
  }
  Fd out, in;
};

SpawnOptions shell(const std::string& command) {
  SpawnOptions options;
  options.program = "/bin/sh";
  options.arguments = {"-c", command};
  return options;
}

/// What `command` prints in a child that is started so.
std::string printed(SpawnOptions options) {
  Pipe pipe;
  options.out = pipe.in.get();
  auto child = Subprocess::start(options);
  EXPECT_TRUE(child);
  std::string text = pipe.read_all();
  EXPECT_TRUE(child && child->await_end(seconds(10)));
  return text;
}

/// Whether a line of /proc/PID/status has the signal in its set.
bool has_signal(const std::string& status, const std::string& line, int number) {
  const auto set = std::stoull(status.substr(status.find(line) + line.size()), nullptr, 16);
  return (set >> (number - 1) & 1U) != 0;
}

TEST(Subprocess, HasTheDescriptorsThatItWasGivenAndNoOther) {
  const Fd open_without_cloexec(::open("/dev/zero", O_RDONLY));
  std::array<int, 2> pair{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
  const Fd ours(pair[0]), theirs(pair[1]);
  // The shell itself opens none; a loop over the numbers starts no other program that would.
  const std::string list = "for i in 0 1 2 3 4 5 6 7 8 9; do [ -e /proc/$$/fd/$i ] && echo $i; done; true";
  EXPECT_EQ(printed(shell(list)), "0\n1\n2\n");
  SpawnOptions with_socket = shell(list);
  with_socket.socket = theirs.get();
  EXPECT_EQ(printed(with_socket), "0\n1\n2\n3\n");
  with_socket.arguments = {"-c", "echo hello >&3"};
  EXPECT_EQ(printed(with_socket), "");
  std::array<char, 16> bytes{};
  EXPECT_EQ(::read(ours.get(), bytes.data(), bytes.size()), 6);
  EXPECT_EQ(printed(shell("readlink /proc/$$/fd/0 /proc/$$/fd/2")), "/dev/null\n/dev/null\n");
}

/// Puts a descriptor at a number until it goes.
class At {
 public:
  At(int number, int fd) : number_(number), before_(::fcntl(number, F_DUPFD_CLOEXEC, 100)) {
    EXPECT_EQ(::dup3(fd, number, O_CLOEXEC), number);
  }
  ~At() {
    if (before_)
      ::dup2(before_.get(), number_);
    else
      ::close(number_);
  }

 private:
  int number_;
  Fd before_;
};

/// A log that has the number of the child's socket, a socket that has the number of the child's log.
TEST(Subprocess, NoDescriptorIsReplacedBeforeItIsInItsPlace) {
  Pipe log;
  const Fd zero(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  std::string socket;
  {
    const At at_socket(SpawnOptions::kSocket, log.in.get()), at_error(STDERR_FILENO, zero.get());
    SpawnOptions options = shell("echo to the log >&2; readlink /proc/$$/fd/3");
    options.err = SpawnOptions::kSocket;
    options.socket = STDERR_FILENO;
    socket = printed(options);
  }
  EXPECT_EQ(socket, "/dev/zero\n");
  EXPECT_EQ(log.read_all(), "to the log\n");
}

TEST(Subprocess, HasAGroupAndSignalsOfItsOwnWhereItIsSaid) {
  struct sigaction ignore {
  }, before{};
  ignore.sa_handler = SIG_IGN;
  sigset_t set, mask;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  ASSERT_EQ(::sigaction(SIGUSR1, &ignore, &before), 0);
  ASSERT_EQ(::sigprocmask(SIG_BLOCK, &set, &mask), 0);
  // No shell: it has its own way with signals.
  SpawnOptions signals;
  signals.program = "/bin/grep";
  signals.arguments = {"^Sig", "/proc/self/status"};
  SpawnOptions group = shell("echo $$; ps -o pgid= -p $$");
  const std::string inherited = printed(signals);
  EXPECT_TRUE(has_signal(inherited, "SigBlk:", SIGTERM));
  EXPECT_TRUE(has_signal(inherited, "SigIgn:", SIGUSR1));
  const std::string ours = printed(group);
  EXPECT_EQ(std::stoi(ours.substr(ours.find('\n'))), ::getpgrp());
  signals.own_group = group.own_group = true;
  const std::string fresh = printed(signals);
  EXPECT_FALSE(has_signal(fresh, "SigBlk:", SIGTERM));
  EXPECT_FALSE(has_signal(fresh, "SigIgn:", SIGUSR1));
  const std::string own = printed(group);
  EXPECT_EQ(std::stoi(own.substr(own.find('\n'))), std::stoi(own));
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(Subprocess, HasItsNameAndMoreEnvironment) {
  SpawnOptions options = shell("echo $0 $FOOTPLATE_TRIED");
  options.name = "sh";
  options.environment = {"FOOTPLATE_TRIED=yes"};
  EXPECT_EQ(printed(options), "sh yes\n");
}

TEST(Subprocess, IsWaitedForWithABoundAndReapedOnce) {
  auto child = Subprocess::start(shell("exec sleep 60"));
  ASSERT_TRUE(child);
  EXPECT_FALSE(child->await_end(std::chrono::milliseconds(20)));
  child->signal(SIGKILL);
  EXPECT_TRUE(child->await_end(seconds(10)));
  EXPECT_TRUE(WIFSIGNALED(child->wait_status()));
  EXPECT_TRUE(child->ended());
  child->await_end();
  child->signal(SIGKILL);  // goes to nobody
}

TEST(Subprocess, AProgramThatIsMissingIsAnErrorThatNamesIt) {
  SpawnOptions options;
  options.program = "/nowhere/at/all";
  const auto child = Subprocess::start(options);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().message, "/nowhere/at/all: No such file or directory");
}

}  // namespace
}  // namespace footplate
