#include "run_files/text_file.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/run_files/folder_fixture.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;

class TextFileTest : public test::FolderTest {};

TEST_F(TextFileTest, IsReadWhole) {
  const std::string text(100'000, 'x');
  write("text", text);
  EXPECT_EQ(text_of_file(folder_ / "text").value(), text);
  write("empty", "");
  EXPECT_EQ(text_of_file(folder_ / "empty").value(), "");
}

/// An exception would end whoever asks.
TEST_F(TextFileTest, WhatCantBeReadIsAnError) {
  EXPECT_THAT(text_of_file(folder_).error().message, HasSubstr("Is a directory"));
  EXPECT_THAT(text_of_file(folder_ / "nothing").error().message, HasSubstr("No such file"));
}

/// A process may also end between open() and read(); a file whose read() fails is one like that.
TEST_F(TextFileTest, AFileOfAProcessThatHasEndedIsAnError) {
  const pid_t pid = ::fork();
  if (pid == 0) ::pause();
  const std::filesystem::path stat = "/proc/" + std::to_string(pid) + "/stat";
  EXPECT_THAT(text_of_file(stat).value(), HasSubstr("("));
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  EXPECT_FALSE(text_of_file(stat));
  EXPECT_FALSE(text_of_file("/proc/self/mem")) << "read() fails, open() doesn't";
}

}  // namespace
}  // namespace footplate
