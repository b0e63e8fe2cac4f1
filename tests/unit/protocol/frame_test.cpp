#include "protocol/frame.h"

#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "fixture.h"

namespace footplate {
namespace {

/// Everything that is complete; the error's message as the last one.
std::vector<std::string> lines_of(LineReader& reader) {
  std::vector<std::string> lines;
  for (;;) {
    const auto line = reader.next();
    if (!line) {
      lines.push_back(line.error().message);
      return lines;
    }
    if (!*line) return lines;
    lines.push_back(**line);
  }
}

using Lines = std::vector<std::string>;

TEST(LineReader, CutsLinesWhereverTheBytesAreCut) {
  const std::string text = "one\n\ntwo\nthree";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    LineReader reader;
    Lines lines;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      reader.append(std::string_view(text).substr(at, piece));
      for (auto& line : lines_of(reader)) lines.push_back(std::move(line));
    }
    EXPECT_EQ(lines, (Lines{"one", "", "two"})) << piece;
    reader.append("\n");
    EXPECT_EQ(lines_of(reader), Lines{"three"});
  }
}

TEST(LineReader, LongStreamsOfRandomPieces) {
  std::mt19937 random(3);
  LineReader reader;
  std::string sent;
  std::string received;
  while (sent.size() < 3'000'000) {
    std::string piece(random() % 5000, 'x');
    for (std::size_t newlines = random() % 4; newlines > 0 && !piece.empty(); --newlines)
      piece[random() % piece.size()] = '\n';
    sent += piece;
    reader.append(piece);
    for (const auto& line : lines_of(reader)) received += line + "\n";
  }
  EXPECT_EQ(received, sent.substr(0, received.size()));
  EXPECT_EQ(sent.find('\n', received.size()), std::string::npos);
}

TEST(LineReader, AFrameMayBeAMebibyteAndNotMore) {
  LineReader reader;
  reader.append(std::string(kMaxFrameBytes - 1, 'x') + "\nshort\n");
  EXPECT_EQ(lines_of(reader).size(), 2u);
  LineReader whole;
  whole.append(std::string(kMaxFrameBytes, 'x') + "\nshort\n");
  EXPECT_EQ(lines_of(whole), Lines{"line longer than 1048576 bytes"});
  EXPECT_EQ(lines_of(whole), Lines{"line longer than 1048576 bytes"}) << "and it stays so";
  LineReader endless;
  endless.append(std::string(kMaxFrameBytes + 1, 'x'));
  EXPECT_EQ(lines_of(endless), Lines{"line longer than 1048576 bytes"}) << "without waiting for the newline";
}

struct Sockets {
  Sockets() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0); }
  ~Sockets() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  int ends[2];
};

TEST(LineWriter, EverythingArrivesInOrderThroughAFullSocket) {
  Sockets sockets;
  LineWriter writer(64 << 20);
  LineReader reader;
  const std::string padding(1000, 'p');
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(writer.push({{"i", i}, {"p", padding}}));
  int next = 0;
  while (next < 5000) {
    ASSERT_TRUE(writer.flush(sockets.ends[0]));
    char buffer[65536];
    const ssize_t got = ::recv(sockets.ends[1], buffer, sizeof buffer, MSG_DONTWAIT);
    ASSERT_GT(got, 0);
    reader.append({buffer, static_cast<std::size_t>(got)});
    for (const auto& line : lines_of(reader)) EXPECT_EQ(parse_line(line)->at("i"), next++);
  }
  EXPECT_TRUE(writer.empty());
  EXPECT_EQ(writer.pending(), 0u);
}

TEST(LineWriter, RefusesWhatPassesItsLimitAndStaysWhole) {
  LineWriter writer(100);
  EXPECT_TRUE(writer.push(std::string(50, 'x')));
  EXPECT_FALSE(writer.push(std::string(50, 'x')));
  EXPECT_EQ(writer.pending(), 53u);
  EXPECT_TRUE(writer.push(1));
  LineWriter large(64 << 20);
  EXPECT_FALSE(large.push(std::string(kMaxFrameBytes, 'x')));
  EXPECT_TRUE(large.empty());
  EXPECT_TRUE(
      large.push(std::string(kMaxFrameBytes - 3, 'x')));  // with its quotes and its newline: the limit
}

TEST(LineWriter, APeerThatLeftIsNoSignal) {
  Sockets sockets;
  ::shutdown(sockets.ends[1], SHUT_RDWR);
  LineWriter writer(1000);
  writer.push(1);
  EXPECT_FALSE(writer.flush(sockets.ends[0]));
}

}  // namespace
}  // namespace footplate
