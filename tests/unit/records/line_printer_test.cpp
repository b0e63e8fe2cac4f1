#include "runtime/records/line_printer.h"

#include <fcntl.h>
#include <pty.h>

#include "fixture.h"

namespace footplate {
namespace {

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0); }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) ::close(end);
  }
  void close(int end) {
    ::close(ends[end]);
    ends[end] = -1;
  }
  std::string read_all() {
    std::string text;
    char buffer[65536];
    for (ssize_t got; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(got));
    return text;
  }
  int ends[2] = {-1, -1};
};

TEST(LinePrinter, WritesEveryLineBeforeItGoes) {
  Pipe pipe;
  std::string expected;
  {
    LinePrinter printer(pipe.ends[1]);
    for (int i = 0; i < 1000; ++i) {
      printer.print("line " + std::to_string(i));
      expected += "line " + std::to_string(i) + "\n";
    }
  }
  pipe.close(1);
  EXPECT_EQ(pipe.read_all(), expected);
}

TEST(LinePrinter, LongLinesComeWhole) {
  Pipe pipe;
  std::string text;
  std::thread reader([&] { text = pipe.read_all(); });
  {
    LinePrinter printer(pipe.ends[1]);
    printer.print(std::string(300000, 'x'));
  }
  pipe.close(1);
  reader.join();
  EXPECT_EQ(text.size(), 300001u);
}

TEST(LinePrinter, AReaderThatLeftIsBorne) {
  Pipe pipe;
  pipe.close(0);
  LinePrinter printer(pipe.ends[1]);
  for (int i = 0; i < 10; ++i) printer.print("nobody reads");  // SIGPIPE would end this process
}

TEST(LinePrinter, AClosedDescriptorIsBorne) {
  LinePrinter printer(-1);
  printer.print("nowhere");
}

TEST(LinePrinter, DoesntWriteIntoWhateverTakesTheNumberLater) {
  test::TemporaryFolder folder;
  Pipe pipe;
  const int number = pipe.ends[1];
  LinePrinter printer(number);
  pipe.close(1);
  const int other = ::open((folder.path() / "other").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(other, number);
  printer.print("a line");
  char byte = 0;
  ASSERT_EQ(::read(pipe.ends[0], &byte, 1), 1);
  ::close(other);
  EXPECT_TRUE(test::lines_of(folder.path() / "other").empty());
}

TEST(LinePrinter, AStuckReaderHoldsUpNeitherTheCallerNorTheEnd) {
  Pipe pipe;
  LinePrinter printer(pipe.ends[1]);
  for (int i = 0; i < 10000; ++i) printer.print(std::string(100, 'x'));  // a pipe takes 64 KiB
  EXPECT_GT(printer.dropped(), 0u);
}

TEST(LinePrinter, ATerminalThatNobodyReadsDoesntHoldUpTheEnd) {
  int own = -1, terminal = -1;
  ASSERT_EQ(::openpty(&own, &terminal, nullptr, nullptr, nullptr), 0);
  {
    LinePrinter printer(terminal);
    for (int i = 0; i < 1000; ++i) printer.print(std::string(100, 'x'));  // a terminal takes some KiB
  }
  EXPECT_EQ(::fcntl(terminal, F_GETFL) & O_NONBLOCK, 0) << "the shell's description was changed";
  ::close(own);
  ::close(terminal);
}

}  // namespace
}  // namespace footplate
