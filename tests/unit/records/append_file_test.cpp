#include "runtime/records/append_file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "fixture.h"

namespace footplate {
namespace {

using test::lines_of;

class AppendFileTest : public testing::Test {
 protected:
  void write(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }
  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_.path() / "x.jsonl";
};

TEST_F(AppendFileTest, GoesOnWhereTheFileEnded) {
  {
    auto file = AppendFile::open(path_);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->last_line(), "");
    EXPECT_FALSE(file->append("a\nb\n"));
  }
  auto file = AppendFile::open(path_);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->last_line(), "b");
  EXPECT_FALSE(file->append("c\n"));
  EXPECT_EQ(file->last_line(), "c");
  EXPECT_EQ(lines_of(path_), (std::vector<std::string>{"a", "b", "c"}));
  struct stat status {};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(AppendFileTest, ALineThatACrashInterruptedIsCutOff) {
  for (const char* torn : {"a\nhalf", "a\n{\"x\":", "half"}) {
    write(torn);
    auto file = AppendFile::open(path_);
    ASSERT_TRUE(file);
    EXPECT_FALSE(file->append("new\n"));
    EXPECT_EQ(lines_of(path_).back(), "new");
    for (const auto& line : lines_of(path_)) EXPECT_TRUE(line == "a" || line == "new") << line;
  }
}

TEST_F(AppendFileTest, ErrorsNameTheFile) {
  const auto file = AppendFile::open(folder_.path() / "no" / "x");
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("x: No such file or directory"), std::string::npos);
  std::filesystem::create_symlink(path_, folder_.path() / "link");
  EXPECT_FALSE(AppendFile::open(folder_.path() / "link"));
}

TEST_F(AppendFileTest, AFullDiskTakesALineWholeOrNotAtAll) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{10, 10};
    ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto file = AppendFile::open(path_);
    const bool first = !file->append("1234\n");
    const bool second = file->append("too long for it\n") == std::errc::file_too_large;
    const bool third = !file->append("6789\n");
    ::_exit(first && second && third ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(lines_of(path_), (std::vector<std::string>{"1234", "6789"}));
}

}  // namespace
}  // namespace footplate
