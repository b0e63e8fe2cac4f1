// Which processes of the system are footplate's.
#include "console/client/runs/process_table.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <string>

#include "tests/unit/records/fixture.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

/// A shell under another program's name, which gives its thread another one and waits to be killed.
class Renamed {
 public:
  Renamed(const fs::path& program, const std::string& name) {
    fs::copy_file("/bin/sh", program);
    EXPECT_EQ(::pipe(nothing_.data()), 0);
    EXPECT_EQ(::pipe(told_.data()), 0);
    const std::string script = "echo " + name + " > /proc/self/comm; echo; read never";
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(nothing_[0], STDIN_FILENO);
      ::dup2(told_[1], STDOUT_FILENO);
      ::execl(program.c_str(), program.c_str(), "-c", script.c_str(), nullptr);
      ::_exit(127);
    }
    char line = 0;
    EXPECT_EQ(::read(told_[0], &line, 1), 1);
  }
  ~Renamed() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    for (const auto& pipe : {nothing_, told_})
      for (const int end : pipe) ::close(end);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  std::array<int, 2> nothing_{}, told_{};
};

TEST(ProcessTable, AThreadsOtherNameHidesNoRank) {
  const test::TemporaryFolder folder;
  const Renamed rank(folder.path() / "footplate-rank", "train");
  EXPECT_EQ(process_entry(rank.pid()).name, "train\n");
  EXPECT_TRUE(is_footplate_process(rank.pid()));
  EXPECT_FALSE(is_footplate_process(rank.pid(), process_entry(rank.pid()).started + 1)) << "another process";
}

TEST(ProcessTable, AnotherProgramIsNone) {
  const test::TemporaryFolder folder;
  const Renamed other(folder.path() / "trainer", "train");
  EXPECT_FALSE(is_footplate_process(other.pid()));
}

}  // namespace
}  // namespace footplate
