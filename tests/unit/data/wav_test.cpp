#include "runtime/data/wav.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace footplate {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class WavTest : public testing::Test {
 protected:
  WavTest() : folder_(fs::temp_directory_path() / ("footplate-wav-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
    EXPECT_TRUE(write_wav(path_, samples_, 8000));
    std::ifstream in(path_, std::ios::binary);
    good_.assign(std::istreambuf_iterator<char>(in), {});
  }
  ~WavTest() override { fs::remove_all(folder_); }

  Result<Wav> read(const std::string& bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return read_wav(path_);
  }
  /// The good file with other bytes from `at` on.
  std::string with(std::size_t at, const std::string& bytes) const {
    return std::string(good_).replace(at, bytes.size(), bytes);
  }
  void expect_refused(const std::string& bytes, const std::string& why) {
    const auto wav = read(bytes);
    ASSERT_FALSE(wav) << why;
    EXPECT_EQ(wav.error().kind, ErrorKind::usage);
    EXPECT_THAT(wav.error().message, AllOf(HasSubstr(path_.string()), HasSubstr(why)));
    if (!bytes.empty()) {
      EXPECT_THAT(wav.error().message, HasSubstr("one channel of 16-bit PCM"));
    }
  }

  const fs::path folder_, path_ = folder_ / "a.wav";
  const std::vector<std::int16_t> samples_{0, 1, -1, 32767, -32768};
  std::string good_;
};

TEST_F(WavTest, WhatIsWrittenIsReadAgain) {
  const auto wav = read(good_);
  ASSERT_TRUE(wav) << wav.error().message;
  EXPECT_EQ(wav->rate, 8000);
  EXPECT_EQ(wav->samples, samples_);
  EXPECT_EQ(good_.size(), 44 + 2 * samples_.size());
  EXPECT_FALSE(fs::exists(path_.string() + ".tmp"));
}

TEST_F(WavTest, OtherChunksArePassedOver) {
  // Of an odd size, which a byte makes even.
  const auto wav = read(std::string(good_).insert(36, std::string("LIST\3\0\0\0abc\0", 12)));
  ASSERT_TRUE(wav) << wav.error().message;
  EXPECT_EQ(wav->samples, samples_);
}

TEST_F(WavTest, OtherFormatsAreNamed) {
  expect_refused(with(20, std::string("\3\0", 2)), "floating point");
  expect_refused(with(20, std::string("\7\0", 2)), "the format 7");
  expect_refused(with(22, std::string("\2\0", 2)), "2 channels");
  expect_refused(with(34, std::string("\10\0", 2)), "8 bits");
}

TEST_F(WavTest, DamageIsNamed) {
  expect_refused("", "is empty");
  expect_refused("RIFF", "isn't a WAV file");
  expect_refused(std::string(100, 'x'), "isn't a WAV file");
  expect_refused(with(24, std::string(4, '\0')), "rate is 0");
  expect_refused(with(16, std::string("\4\0\0\0", 4)), "damaged");
  expect_refused(with(40, std::string("\0\0\0\0", 4)), "no samples");
  expect_refused(with(40, std::string("\3\0\0\0", 4)), "whole samples");
  expect_refused(with(40, std::string(4, '\xff')), "cut short");
  expect_refused(with(12, "junk"), "no chunk 'fmt '");
  expect_refused(with(36, "junk"), "no chunk 'data'");
  for (std::size_t length = 1; length < good_.size(); ++length)
    EXPECT_FALSE(read(good_.substr(0, length))) << length;
}

TEST_F(WavTest, AFolderThatIsntThereIsNamedWhereItIsWrittenTo) {
  const auto written = write_wav(folder_ / "no" / "a.wav", samples_, 8000);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::failed);
  EXPECT_THAT(written.error().message, HasSubstr("No such file"));
}

}  // namespace
}  // namespace footplate
