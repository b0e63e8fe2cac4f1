#include <cstring>

#include "tests/unit/sinks/sink_fixture.h"

namespace footplate::sinks {
namespace {

using TensorboardSinkTest = SinkTest;

/// The bytes of each record: a length, a checksum, the bytes, a checksum.
std::vector<std::string> records(const std::string& file) {
  std::vector<std::string> found;
  for (std::size_t place = 0; place < file.size();) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data() + place, sizeof length);
    found.push_back(file.substr(place + 12, length));
    place += 12 + length + 4;
  }
  return found;
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

TEST_F(TensorboardSinkTest, ARecordIsAsTensorboardWritesIt) {
  auto sink = open_tensorboard({folder, "r"});
  ASSERT_TRUE((*sink)->write(row(300, 2.5)));
  ASSERT_TRUE((*sink)->flush());
  const std::string file = contents(folder / "main" / "events.out.tfevents.0000000001.footplate");
  // The first record as TensorBoard's own writer makes it at that time: "brain.Event:2".
  const auto all = records(file);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(hex(all[0]), hex(all[0].substr(0, 9)) +
                             "1000"
                             "1a0d" +
                             hex("brain.Event:2"));
  EXPECT_EQ(hex(all[1].substr(9)),
            "10ac02"
            "3a020801");  // step 300, a start
  EXPECT_EQ(hex(all[2].substr(9)),
            "10ac02"
            "2a13"
            "0a11"
            "0a0a" +
                hex("train/loss") +
                "15"
                "00002040");
}

TEST_F(TensorboardSinkTest, EachStartHasAFileAndEachBranchAFolder) {
  auto sink = open_tensorboard({folder, "r"});
  ASSERT_TRUE((*sink)->write(row(1, 3)));
  ASSERT_TRUE((*sink)->write(row(1, 2.9, 2)));
  ASSERT_TRUE((*sink)->write(row(2, 2.8, 2)));
  ASSERT_TRUE((*sink)->write(row(1, 2.9, 3, "from-1")));
  ASSERT_TRUE((*sink)->flush());
  EXPECT_EQ(records(contents(folder / "main" / "events.out.tfevents.0000000002.footplate")).size(), 4U);
  EXPECT_TRUE(std::filesystem::exists(folder / "main" / "events.out.tfevents.0000000001.footplate"));
  EXPECT_TRUE(std::filesystem::exists(folder / "from-1" / "events.out.tfevents.0000000003.footplate"));
}

/// Within one start, where ranks have gone back to a checkpoint: TensorBoard forgets what was at these steps.
TEST_F(TensorboardSinkTest, AStartThatGoesBackHasAnotherFile) {
  auto sink = open_tensorboard({folder, "r"});
  ASSERT_TRUE((*sink)->write(row(1, 2.9)));
  ASSERT_TRUE((*sink)->write(row(2, 2.8)));
  MetricsRow again = row(2, 2.7);
  again.went_back = 1;
  ASSERT_TRUE((*sink)->write(again));
  ASSERT_TRUE((*sink)->flush());
  const auto first = folder / "main" / "events.out.tfevents.0000000001.footplate";
  const auto second = folder / "main" / "events.out.tfevents.0000000001.footplate.000001";
  EXPECT_EQ(records(contents(first)).size(), 4U);
  EXPECT_EQ(records(contents(second)).size(), 3U);
  EXPECT_LT(first, second) << "the order in which they are read";
}

TEST_F(TensorboardSinkTest, AFullDiskIsToldOfAFileThatIsClosed) {
  std::filesystem::create_directory(folder / "main");
  std::filesystem::create_symlink("/dev/full", folder / "main" / "events.out.tfevents.0000000001.footplate");
  auto sink = open_tensorboard({folder, "r"});
  ASSERT_TRUE((*sink)->write(row(1, 2.9)));
  ASSERT_TRUE((*sink)->write(row(2, 2.8, 2)));
  const auto flushed = (*sink)->flush();
  ASSERT_FALSE(flushed);
  EXPECT_NE(flushed.error().message.find("tfevents.0000000001"), std::string::npos)
      << flushed.error().message;
}

/// A run may have more branches and starts than a process may have open files.
TEST_F(TensorboardSinkTest, ManyStartsHaveOneOpenFile) {
  auto sink = open_tensorboard({folder, "r"});
  const auto open_files = [] {
    const std::filesystem::directory_iterator files("/proc/self/fd");
    return std::distance(begin(files), end(files));
  };
  const auto before = open_files();
  for (int start = 1; start <= 20; ++start) ASSERT_TRUE((*sink)->write(row(start, 2.5, start)));
  EXPECT_LE(open_files(), before + 1);
}

TEST_F(TensorboardSinkTest, ItsChecksumsAreCrc32c) {
  auto sink = open_tensorboard({folder, "r"});
  ASSERT_TRUE((*sink)->write({0, 1, "main", 0, {}}));
  ASSERT_TRUE((*sink)->flush());
  const std::string file = contents(folder / "main" / "events.out.tfevents.0000000001.footplate");
  // Of TensorBoard's own writer for {wall_time 0, step 0, file_version "brain.Event:2"}; its length is 26.
  EXPECT_EQ(hex(file.substr(0, 12)),
            "1a00000000000000"
            "129bd82d");
  EXPECT_EQ(hex(file.substr(12 + 26, 4)), "31e6c78b");
}

}  // namespace
}  // namespace footplate::sinks
