#include "protocol/reserved_file.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>

namespace footplate {
namespace {

namespace fs = std::filesystem;

class ReservedFile : public testing::Test {
 protected:
  ReservedFile() {
    std::string name = (fs::temp_directory_path() / "fp-reserved-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~ReservedFile() override { fs::remove_all(folder_); }

  std::string content() const {
    std::ifstream file(folder_ / "a.json");
    std::stringstream text;
    text << file.rdbuf();
    return text.str().substr(0, text.str().find_last_not_of(' ') + 1);
  }

  fs::path folder_;
};

TEST_F(ReservedFile, TakesThePlaceOfTheFileAgainAndAgain) {
  const fs::path path = folder_ / "a.json";
  ASSERT_TRUE(reserve_room(path, 100));
  EXPECT_TRUE(write_into_reserved_room(path, "first"));
  EXPECT_EQ(content(), "first");
  EXPECT_FALSE(write_into_reserved_room(path, "second"))
      << "the first use took the room: there was no file to change places with";
  ASSERT_TRUE(reserve_room(path, 100));
  EXPECT_TRUE(write_into_reserved_room(path, "a longer second"));
  EXPECT_TRUE(write_into_reserved_room(path, "third"));
  EXPECT_EQ(content(), "third");
  give_room_back(path);
  EXPECT_FALSE(write_into_reserved_room(path, "fourth"));
  EXPECT_EQ(content(), "third");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(ReservedFile, KeepsRoomWhereTheFileWasASmallOne) {
  const fs::path path = folder_ / "a.json";
  std::ofstream(path) << "old";
  ASSERT_TRUE(reserve_room(path, 100));
  EXPECT_TRUE(write_into_reserved_room(path, "first"));
  EXPECT_TRUE(write_into_reserved_room(path, "the second, larger than the old one")) << "its block has room";
  EXPECT_EQ(content(), "the second, larger than the old one");
}

TEST_F(ReservedFile, RefusesWhatDoesNotFit) {
  const fs::path path = folder_ / "a.json";
  std::ofstream(path) << "old";
  ASSERT_TRUE(reserve_room(path, 10));
  EXPECT_FALSE(write_into_reserved_room(path, std::string(100'000, 'x')));
  EXPECT_EQ(content(), "old");
  EXPECT_FALSE(reserve_room(folder_ / "missing" / "a.json", 10));
}

}  // namespace
}  // namespace footplate
