#include "runtime/data/labelled_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/data/idx.h"
#include "runtime/data/labelled_csv.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class LabelledSetTest : public testing::Test {
 protected:
  LabelledSetTest()
      : folder_(fs::temp_directory_path() / ("footplate-labelled-" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~LabelledSetTest() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  fs::path write_gzip(const std::string& name, const std::string& bytes) const {
    gzFile file = gzopen((folder_ / name).c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return folder_ / name;
  }
  std::string read(const fs::path& path) const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// As the IDX format has it.
  static std::string idx(const std::vector<int>& shape, const std::string& values, char type = 8) {
    std::string bytes{0, 0, type, static_cast<char>(shape.size())};
    for (const int size : shape)
      bytes += {0, 0, static_cast<char>(size / 256), static_cast<char>(size % 256)};
    return bytes + values;
  }
  /// Images of 4 x 5, each of which has its number in all pixels.
  static std::string images(int count) {
    std::string values;
    for (int i = 0; i < count; ++i) values += std::string(20, static_cast<char>(i));
    return idx({count, 4, 5}, values);
  }
  static std::string labels(const std::string& values) {
    return idx({static_cast<int>(values.size())}, values);
  }
  void write_images() const {
    write("train-images-idx3-ubyte", images(4));
    write("train-labels-idx1-ubyte", labels(std::string("\0\1\2\1", 4)));
    write_gzip("t10k-images-idx3-ubyte.gz", images(2));
    write("t10k-labels-idx1-ubyte", labels("\1\2"));
  }
  void expect_refused(const std::string& path, const std::vector<std::string>& words) const {
    const auto set = LabelledSet::open(path);
    ASSERT_FALSE(set) << words.front();
    EXPECT_EQ(set.error().kind, ErrorKind::usage);
    for (const std::string& word : words) EXPECT_THAT(set.error().message, HasSubstr(word));
  }
  void expect_bad_csv(const std::string& text, const std::string& why) const {
    const fs::path path = write("a.csv", text);
    const auto rows = read_labelled_csv(path);
    ASSERT_FALSE(rows) << why;
    EXPECT_EQ(rows.error().kind, ErrorKind::usage);
    EXPECT_THAT(rows.error().message, testing::AllOf(HasSubstr(path.string()), HasSubstr(why)));
  }
  void expect_bad_idx(const std::string& bytes, const std::string& why) const {
    const fs::path path = write("a", bytes);
    const auto read = read_idx(path, 1);
    ASSERT_FALSE(read) << why;
    EXPECT_EQ(read.error().kind, ErrorKind::usage);
    EXPECT_THAT(read.error().message, testing::AllOf(HasSubstr(path.string()), HasSubstr(why)));
  }

  const fs::path folder_;
};

TEST_F(LabelledSetTest, IdxFilesAreReadPlainAndGzipped) {
  const std::string bytes = idx({2, 1, 3}, "abcdef");
  for (const fs::path& path : {write("a", bytes), write_gzip("b.gz", bytes)}) {
    const auto read = read_idx(path, 3);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_THAT(read->shape, ElementsAre(2, 1, 3));
    EXPECT_THAT(read->values, ElementsAre('a', 'b', 'c', 'd', 'e', 'f'));
  }
}

TEST_F(LabelledSetTest, DamageOfIdxFilesIsNamed) {
  const std::string good = idx({3}, "abc");
  expect_bad_idx("", "is empty");
  expect_bad_idx("RIFF", "isn't an IDX file");
  expect_bad_idx(idx({3}, "abc", 9), "type 0x9 at byte 2");
  expect_bad_idx(idx({1, 3}, "abc"), "2 dimensions at byte 3; 1 are wanted");
  expect_bad_idx(idx({0}, ""), "the size at byte 4 is 0");
  expect_bad_idx(idx({4}, "abc"), "is cut short: its header promises 4 values, 3 are there");
  expect_bad_idx(good + "d", "is damaged: its header promises 3 values, 4 are there");
  for (std::size_t length = 1; length < good.size(); ++length)
    EXPECT_FALSE(read_idx(write("a", good.substr(0, length)), 1)) << length;
  const auto huge = read_idx(write("b", std::string("\0\0\10\3", 4) + std::string(12, '\xff')), 3);
  ASSERT_FALSE(huge);
  EXPECT_THAT(huge.error().message, HasSubstr("damaged header"));
}

TEST_F(LabelledSetTest, DamageOfGzipIsNamed) {
  const std::string packed = read(write_gzip("a.gz", idx({3}, "abc")));
  for (std::size_t length = 3; length < packed.size(); ++length)
    EXPECT_FALSE(read_idx(write("a.gz", packed.substr(0, length)), 1)) << length;
  expect_bad_idx(packed.substr(0, packed.size() - 6), "is cut short");
  std::string wrong_sum = packed;
  wrong_sum[packed.size() - 6] = static_cast<char>(wrong_sum[packed.size() - 6] ^ 1);
  expect_bad_idx(wrong_sum, "is damaged");
}

TEST_F(LabelledSetTest, TablesHaveTheirLabelLastAndMayHaveAHead) {
  for (const fs::path& path : {write("a.csv", "1, 2.5,0\r\n\n-3e2,4,12\n"),
                               write("c.csv",
                                     "\xEF\xBB\xBF"
                                     "1,2.5,0\n-300,4,12\n"),
                               write_gzip("b.csv.gz", "height,width,class\n1,2.5,0\n-300,4,12")}) {
    const auto rows = read_labelled_csv(path);
    ASSERT_TRUE(rows) << rows.error().message;
    EXPECT_EQ(rows->columns, 2);
    EXPECT_THAT(rows->values, ElementsAre(1, 2.5, -300, 4));
    EXPECT_THAT(rows->labels, ElementsAre(0, 12));
  }
}

TEST_F(LabelledSetTest, DamageOfTablesIsNamedWithItsLine) {
  expect_bad_csv("", "is empty");
  expect_bad_csv("a,b,c\n", "no rows");
  expect_bad_csv("1,2,0\n1,x,0\n", "line 2: 'x' in column 2 is no finite number of float32");
  expect_bad_csv("1,2,0\n\n1,nan,0\n", "line 3: 'nan' in column 2 is no finite number");
  expect_bad_csv("1,2,0\n1,,0\n", "line 2: '' in column 2 is no finite number");
  for (const char* beyond : {"1e39", "-1e39"})
    expect_bad_csv(std::string("1,2,0\n") + beyond + ",2,0\n",
                   std::string("line 2: '") + beyond + "' in column 1 is no finite number of float32");
  for (const char* first : {"1e39", "-1e39", "1e400", "nan", "inf"})
    expect_bad_csv(std::string(first) + ",0\n1,1\n",
                   std::string("line 1: '") + first + "' in column 1 is no finite number of float32");
  expect_bad_csv("1,2,0\n1,0\n", "line 2: 2 numbers, the lines before it have 3");
  expect_bad_csv("1,2,0\n1,2,0,\n", "line 2: '' in column 4");
  expect_bad_csv("7\n", "line 1: one number");
  expect_bad_csv("1,2,0.5\n", "line 1: the label 0.5");
  expect_bad_csv("1,2,-1\n", "line 1: the label -1");
  expect_bad_csv("1,2,1000\n", "labels are whole numbers, 0 to 999");
}

TEST_F(LabelledSetTest, OfATableEveryFifthRowIsHeldOut) {
  std::string text;
  for (int i = 0; i < 12; ++i) text += std::to_string(i) + ",7," + std::to_string(i % 3) + "\n";
  const auto set = LabelledSet::open(write("a.csv", text));
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_THAT(set->shape(), ElementsAre(2));
  EXPECT_EQ(set->classes(), 3);
  EXPECT_EQ(set->training(), 10);
  EXPECT_THAT(std::get<1>(set->part(true).samples), ElementsAre(4, 7, 9, 7));
  EXPECT_THAT(set->part(true).labels, ElementsAre(1, 0));
  // 0, 1, 2, 3, 5, 6, 7, 8, 10, 11
  EXPECT_NEAR(set->mean()[0], 5.3, 1e-6);
  EXPECT_NEAR(set->deviation()[0], std::sqrt(40.9 - 5.3 * 5.3), 1e-5);
  EXPECT_EQ(set->mean()[1], 7);
  EXPECT_EQ(set->deviation()[1], 1) << "of a column that never changes";
}

TEST_F(LabelledSetTest, ImagesHaveOneMeanAndAreHeldOutByFile) {
  write_images();
  const auto set = LabelledSet::open(folder_);
  ASSERT_TRUE(set) << set.error().message;
  EXPECT_THAT(set->shape(), ElementsAre(4, 5));
  EXPECT_EQ(set->classes(), 3);
  EXPECT_EQ(set->held_out(), 2);
  EXPECT_THAT(set->mean(), ElementsAre(1.5F));
  EXPECT_NEAR(set->deviation()[0], std::sqrt(1.25), 1e-6);
  const auto hash = set->identity().hash;
  write("t10k-labels-idx1-ubyte", labels("\2\1"));
  EXPECT_NE(LabelledSet::open(folder_)->identity().hash, hash);
}

TEST_F(LabelledSetTest, WhatDoesNotFitIsNamed) {
  expect_refused(folder_ / "no.csv", {"no.csv", "No such file"});
  expect_refused(folder_, {"neither train-images-idx3-ubyte nor train-images-idx3-ubyte.gz"});
  write_images();
  write("train-labels-idx1-ubyte", labels("\1\2\1"));
  expect_refused(folder_, {"train-images-idx3-ubyte has 4 images", "3 labels"});
  write("train-labels-idx1-ubyte", labels(std::string(4, '\2')));
  expect_refused(folder_, {"the one label 2"});
  write_images();
  write("t10k-labels-idx1-ubyte", labels("\1\3"));
  expect_refused(folder_, {"holds out the label 3 (sample 1)", "0 to 2"});
  write_images();
  write("t10k-images-idx3-ubyte", idx({2, 5, 4}, std::string(40, 'a')));
  expect_refused(folder_, {"4 x 5", "5 x 4"});
  write("train-images-idx3-ubyte", idx({4, 2, 5}, std::string(40, 'a')));
  expect_refused(folder_, {"images of 2 x 5"});
  expect_refused(write("a.csv", "1,0\n2,1\n"), {"2 rows", "every fifth"});
}

}  // namespace
}  // namespace footplate
