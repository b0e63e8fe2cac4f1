#include "runtime/data/recordings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <string>

#include "runtime/data/wav.h"
#include "runtime/data/windows.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class RecordingsTest : public testing::Test {
 protected:
  RecordingsTest()
      : folder_(fs::temp_directory_path() / ("footplate-recordings-" + std::to_string(getpid()))) {
    fs::create_directories(folder_ / "deep");
  }
  ~RecordingsTest() override { fs::remove_all(folder_); }

  /// The samples begin with `first` and count.
  void write(const std::string& name, std::size_t samples, std::int16_t first = 0, std::int64_t rate = 8000) {
    std::vector<std::int16_t> values(samples);
    std::iota(values.begin(), values.end(), first);
    ASSERT_TRUE(write_wav(folder_ / name, values, rate));
  }
  void expect_refused(const std::string& name, const std::vector<std::string>& words) {
    const auto recordings = Recordings::open(name, 8000);
    ASSERT_FALSE(recordings);
    EXPECT_EQ(recordings.error().kind, ErrorKind::usage);
    for (const std::string& word : words) EXPECT_THAT(recordings.error().message, HasSubstr(word));
  }
  Recordings opened() const {
    auto recordings = Recordings::open(folder_, 8000);
    EXPECT_TRUE(recordings) << recordings.error().message;
    return *std::move(recordings);
  }

  const fs::path folder_;
};

TEST_F(RecordingsTest, AreSortedByPathAndEveryTenthIsHeldOut) {
  for (int i = 0; i < 21; ++i)
    write((i % 2 == 0 ? "" : "deep/") + std::to_string(100 + i) + ".wav", 5, static_cast<std::int16_t>(i));
  std::ofstream(folder_ / "README") << "not a recording";
  const Recordings recordings = opened();
  ASSERT_EQ(recordings.count(), 21u);
  EXPECT_EQ(recordings.path(0), folder_ / "100.wav");
  EXPECT_EQ(recordings.path(20), folder_ / "deep/119.wav");
  EXPECT_EQ(recordings.samples(20)[4], 19 + 4);
  std::set<std::size_t> held_out;
  for (std::size_t i = 0; i < 21; ++i)
    if (recordings.is_held_out(i)) held_out.insert(i);
  EXPECT_EQ(held_out, (std::set<std::size_t>{9, 19}));
}

TEST_F(RecordingsTest, OfAFewTheLastOneIsHeldOut) {
  write("a.wav", 5);
  write("b.wav", 5);
  const Recordings recordings = opened();
  EXPECT_FALSE(recordings.is_held_out(0));
  EXPECT_TRUE(recordings.is_held_out(1));
}

TEST_F(RecordingsTest, TheirHashIsOfTheSamplesAndWhereRecordingsBegin) {
  write("a.wav", 5);
  write("b.wav", 5, 5);
  const auto hash = opened().identity().hash;
  EXPECT_EQ(opened().identity().bytes, 20u);
  fs::rename(folder_ / "b.wav", folder_ / "c.wav");
  EXPECT_EQ(opened().identity().hash, hash);
  write("a.wav", 4);
  write("c.wav", 6, 4);  // the same samples one after the other
  EXPECT_NE(opened().identity().hash, hash);
  write("a.wav", 5);
  write("c.wav", 5, 6);
  EXPECT_NE(opened().identity().hash, hash);
}

TEST_F(RecordingsTest, WhatIsWrongIsNamedWithItsFile) {
  expect_refused("no/such", {"no/such", "speech", "folder of WAV files"});
  expect_refused(folder_, {"no files that end in .wav"});
  write("a.wav", 5);
  expect_refused(folder_, {"one recording", "two"});
  write("b.wav", 5, 0, 44100);
  expect_refused(folder_, {"b.wav", "44100", "task.rate is 8000"});
  std::ofstream(folder_ / "b.wav") << "RIFF";
  expect_refused(folder_, {"data.corpus: ", "b.wav", "isn't a WAV file"});
}

TEST_F(RecordingsTest, WindowsLieOneAfterTheOtherWithinARecording) {
  write("a.wav", 10);
  write("b.wav", 3, 100);  // too short
  write("c.wav", 8, 200);
  write("d.wav", 9, 300);
  const Recordings recordings = opened();
  const Windows training(recordings, 4, false), held_out(recordings, 4, true);
  ASSERT_EQ(training.count(), 4);
  ASSERT_EQ(held_out.count(), 2);
  const auto first = [](const Windows& windows, std::int64_t i) { return windows.at(i).front(); };
  EXPECT_EQ(first(training, 0), 0);
  EXPECT_EQ(first(training, 1), 4);
  EXPECT_EQ(first(training, 2), 200);
  EXPECT_EQ(first(held_out, 1), 304);
  const auto shifted = [&](std::int64_t window, std::uint64_t bits) {
    return training.with_room(window).subspan(static_cast<std::size_t>(training.shift(window, bits)), 4);
  };
  std::set<int> heard;
  for (std::uint64_t bits = 0; bits < 20; ++bits)
    for (const std::int64_t window : {0, 1})
      for (const std::int16_t sample : shifted(window, bits)) heard.insert(sample);
  EXPECT_EQ(heard, (std::set<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})) << "with those at the end, and no other's";
  EXPECT_EQ(shifted(3, 12345).front(), 204);
}

}  // namespace
}  // namespace footplate
