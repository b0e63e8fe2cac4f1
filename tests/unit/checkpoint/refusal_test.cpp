// One crafted file per rule of docs/checkpoints.md, each refused for its own reason.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fixture.h"
#include "runtime/checkpoint/safetensors.h"

namespace footplate {
namespace {

using test::TemporaryFolder;

std::string with_length(std::uint64_t length, const std::string& rest) {
  std::string text(8, '\0');
  std::memcpy(text.data(), &length, 8);
  return text + rest;
}

std::string file(const std::string& header, const std::string& data = "") {
  return with_length(header.size(), header + data);
}

/// {"a": {"dtype": "F32", "shape": SHAPE, "data_offsets": OFFSETS}}
std::string tensor(const std::string& shape, const std::string& offsets,
                   const std::string& dtype = "\"F32\"") {
  return "{\"a\":{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
}

std::string two(const std::string& offsets_a, const std::string& offsets_b) {
  return "{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + offsets_a +
         "},\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":" + offsets_b + "}}";
}

/// A file of tensor "a" that says it is a slice.
std::string sliced(std::string slices, const std::string& shape = "[1]") {
  for (std::size_t at = 0; (at = slices.find('"', at)) != std::string::npos; at += 2) slices.insert(at, "\\");
  return "{\"__metadata__\":{\"footplate.slices\":\"" + slices + "\"}," + tensor(shape, "[0,4]").substr(1);
}

struct Refusal {
  const char* rule;
  std::string content;
  const char* message;  ///< a part of the error that no other rule's has
};

std::vector<Refusal> refusals() {
  const std::string good = tensor("[1]", "[0,4]");
  const std::string four(4, 'x');
  return {
      {"EmptyFile", "", "0 bytes are too short"},
      {"SevenBytes", "1234567", "7 bytes are too short"},
      {"LengthBeyondFile", with_length(100, "{}"), "a header of 100 bytes in a file of 10"},
      {"LengthAboveLimit", with_length((16u << 20) + 1, "{}"), "a header of 16777217 bytes; at most"},
      {"LengthOverflows", with_length(~std::uint64_t{0}, "{}"), "a header of 18446744073709551615 bytes"},
      {"EmptyHeader", file(""), "doesn't start with '{'"},
      {"LeadingSpace", file(" {}"), "doesn't start with '{'"},
      {"ByteOrderMark", file("\xef\xbb\xbf{}"), "doesn't start with '{'"},
      {"ListAtTop", file("[]"), "doesn't start with '{'"},
      {"PaddedWithNewline", file("{}\n"), "something other than spaces after"},
      {"NulInPadding", file(std::string("{}\0 }", 5)), "a NUL byte in the header"},
      {"TwoObjects", file("{}{}"), "isn't valid JSON"},
      {"NotJson", file("{a:1}"), "isn't valid JSON"},
      {"CutJson", file("{\"a\":}"), "isn't valid JSON at byte 6"},
      {"InvalidUtf8", file("{\"\xff\":{}}"), "isn't valid JSON at byte 3"},
      {"OverlongUtf8", file("{\"\xc0\x80\":{}}"), "isn't valid JSON at byte 3"},
      {"LoneSurrogate", file("{\"\\ud800\":{}}"), "isn't valid JSON"},
      {"Comment", file("{/* */}"), "isn't valid JSON"},
      {"DuplicateName",
       file("{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
            "\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"),
       "tensor 'a' twice"},
      {"DuplicateByEscape",
       file("{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
            "\"\\u0061\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"),
       "tensor 'a' twice"},
      {"DuplicateField",
       file("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"),
       "field 'dtype' twice"},
      {"DuplicateMetadata", file("{\"__metadata__\":{\"k\":\"v\",\"k\":\"w\"}}"),
       "key 'k' twice in __metadata__"},
      {"EmptyName", file("{\"\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}"), "an empty name"},
      {"LongName", file("{\"" + std::string(1025, 'n') + "\":{}}"), "a name longer than 1024 bytes"},
      {"EscapeInName", file("{\"a\\u001b[2J\":{}}"), "a control character in a name"},
      {"NulInName", file("{\"a\\u0000b\":{}}"), "a control character in a name"},
      {"UnknownType", file(tensor("[1]", "[0,4]", "\"F31\""), four), "unknown dtype 'F31'"},
      {"TypeOfAnotherCase", file(tensor("[1]", "[0,4]", "\"f32\""), four), "unknown dtype 'f32'"},
      {"TypeIsNumber", file(tensor("[1]", "[0,4]", "32"), four), "a number where none belongs"},
      {"MissingType", file("{\"a\":{\"shape\":[1],\"data_offsets\":[0,4]}}", four), "no field 'dtype'"},
      {"MissingShape", file("{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", four), "no field 'shape'"},
      {"MissingOffsets", file("{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", four), "no field 'data_offsets'"},
      {"UnknownField", file("{\"a\":{\"dtype\":\"F32\",\"strides\":[1]}}"), "unknown field 'strides'"},
      {"TensorIsNumber", file("{\"a\":1}"), "a number where none belongs"},
      {"TensorIsString", file("{\"a\":\"b\"}"), "a string where none belongs"},
      {"TensorIsList", file("{\"a\":[]}"), "a list where none belongs"},
      {"TensorIsNull", file("{\"a\":null}"), "null where a value belongs"},
      {"TensorIsBoolean", file("{\"a\":true}"), "a boolean where a value belongs"},
      {"NestedShape", file(tensor("[[1]]", "[0,4]"), four), "a list where none belongs"},
      {"NestedObject", file(tensor("[{}]", "[0,4]"), four), "nested too deep"},
      {"DeepNesting", file("{\"a\":{\"shape\":" + std::string(100000, '[') + "}}"),
       "a list where none belongs"},
      {"NegativeExtent", file(tensor("[-1]", "[0,4]"), four), "negative number -1"},
      {"MinusZero", file(tensor("[-0]", "[0,0]")), "negative number"},
      {"FractionalExtent", file(tensor("[1.5]", "[0,4]"), four), "number 1.5 is not a whole number"},
      {"ExponentExtent", file(tensor("[1e0]", "[0,4]"), four), "number 1e0 is not a whole number"},
      {"ExtentAbove63Bits", file(tensor("[9223372036854775808]", "[0,4]"), four),
       "extent 9223372036854775808 is too large"},
      {"ExtentAbove64Bits", file(tensor("[18446744073709551616]", "[0,4]"), four),
       "is not a whole number of at most 64"},
      {"ProductOverflows", file(tensor("[4611686018427387904,4]", "[0,0]")), "overflows 64 bits"},
      {"ProductWrapsToFit", file(tensor("[2147483649,2147483648,2]", "[0,4]"), four), "overflows 64 bits"},
      {"SeventeenDimensions", file(tensor("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]"), four),
       "more than 16 dimensions"},
      {"ExtentIsString", file(tensor("[\"1\"]", "[0,4]"), four), "a string where none belongs"},
      {"OneOffset", file(tensor("[1]", "[0]"), four), "has to be two numbers"},
      {"ThreeOffsets", file(tensor("[1]", "[0,4,8]"), four), "two numbers, not more"},
      {"NegativeOffset", file(tensor("[1]", "[-4,0]"), four), "negative number -4"},
      {"ReversedOffsets", file(tensor("[1]", "[4,0]"), four), "reversed offsets [4, 0)"},
      {"OffsetBeyondData", file(tensor("[2]", "[0,8]"), four), "offsets [0, 8) beyond the data's 4 bytes"},
      {"HugeOffset", file(tensor("[1]", "[18446744073709551611,18446744073709551615]"), four),
       "beyond the data's 4 bytes"},
      {"SizeDiffersFromShape", file(tensor("[2]", "[0,4]"), four),
       "F32[2] needs 8 bytes, its offsets [0, 4) hold 4"},
      {"GapAtStart", file(tensor("[1]", "[4,8]"), four + four), "a gap of 4 bytes before it"},
      {"GapBetween", file(two("[0,2]", "[3,5]"), "xxxxx"), "'b': a gap of 1 bytes before it"},
      {"Overlap", file(two("[0,2]", "[1,3]"), "xxx"), "'b': offsets [1, 3) overlap"},
      {"SameBytesTwice", file(two("[0,2]", "[0,2]"), "xx"), "'b': offsets [0, 2) overlap"},
      {"TrailingByte", file(good, four + "y"), "1 trailing bytes"},
      {"DataWithoutTensors", file("{}", "polyglot"), "8 trailing bytes"},
      {"MetadataNotObject", file("{\"__metadata__\":\"x\"}"), "a string where none belongs"},
      {"MetadataNumber", file("{\"__metadata__\":{\"k\":1}}"), "a number where none belongs"},
      {"MetadataNested", file("{\"__metadata__\":{\"k\":{}}}"), "nested too deep"},
      {"SlicesNotJson", file(sliced("{"), four), "footplate.slices is not a JSON object"},
      {"SlicesOfOtherTensor", file(sliced(R"({"b":{"shape":[4],"first":0}})"), four),
       "names a tensor that the file doesn't hold"},
      {"SliceWithoutShape", file(sliced(R"({"a":{"first":0}})"), four),
       "what it is a slice of can't be read"},
      {"SliceOfNegativeShape", file(sliced(R"({"a":{"shape":[-4],"first":0}})"), four),
       "the shape that it is a slice of can't be read"},
      {"SliceOfTooMuch", file(sliced(R"({"a":{"shape":[4611686018427387904,4],"first":0}})"), four),
       "overflows 64 bits"},
      {"SliceBeyondTheEnd", file(sliced(R"({"a":{"shape":[4],"first":4}})"), four),
       "elements 4 to 5 of F32[4]"},
      {"SliceThatWraps", file(sliced(R"({"a":{"shape":[4],"first":18446744073709551615}})"), four),
       "elements 18446744073709551615 to 0 of F32[4]"},
      {"SliceOfTwoDimensions", file(sliced(R"({"a":{"shape":[4],"first":0}})", "[1,1]"), four),
       "a slice has one dimension"},
      {"Pickle", std::string("\x80\x02}q\x00.PICKLE!", 12), "a header of"},
      {"TorchScriptZip", std::string("PK\x03\x04\x00\x00\x00\x00", 8) + "archive/data.pkl", "a header of"},
  };
}

class RefusedFile : public testing::TestWithParam<Refusal> {};

TEST_P(RefusedFile, ForItsOwnReason) {
  TemporaryFolder folder;
  const auto path = folder.path() / "x.safetensors";
  test::write_file(path, GetParam().content);
  const auto file = SafetensorsFile::open(path);
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find(GetParam().message), std::string::npos) << file.error().message;
  EXPECT_LT(file.error().message.size(), 2048u);
}

INSTANTIATE_TEST_SUITE_P(Rules, RefusedFile, testing::ValuesIn(refusals()),
                         [](const auto& info) { return std::string(info.param.rule); });

TEST(RefusedPlace, SymbolicLinkFifoFolderSocketAndNothing) {
  TemporaryFolder folder;
  const auto message = [&](const char* name) {
    return SafetensorsFile::open(folder.path() / name).error().message;
  };
  test::write_file(folder.path() / "real", file("{}"));
  ASSERT_TRUE(SafetensorsFile::open(folder.path() / "real"));

  std::filesystem::create_symlink(folder.path() / "real", folder.path() / "link");
  EXPECT_NE(message("link").find("is a symbolic link"), std::string::npos);
  ASSERT_EQ(::mkfifo((folder.path() / "fifo").c_str(), 0600), 0);
  EXPECT_NE(message("fifo").find("is not a regular file"), std::string::npos);
  std::filesystem::create_directory(folder.path() / "folder");
  EXPECT_NE(message("folder").find("is not a regular file"), std::string::npos);
  EXPECT_NE(message("nothing").find("can't be opened: No such file"), std::string::npos);
  EXPECT_NE(SafetensorsFile::open("/dev/zero").error().message.find("is not a regular file"),
            std::string::npos);
}

TEST(RefusedPlace, LengthOtherThanExpected) {
  TemporaryFolder folder;
  test::write_file(folder.path() / "x", file("{}"));
  EXPECT_TRUE(SafetensorsFile::open(folder.path() / "x", 10));
  EXPECT_NE(SafetensorsFile::open(folder.path() / "x", 11).error().message.find("it has 10 bytes, not 11"),
            std::string::npos);
}

TEST(RefusedHeader, ClaimsOfHugeTensorsAllocateNothing) {
  // 1 KiB that speaks of 2^62 bytes: refused by arithmetic, long before memory would be asked for.
  const auto header = parse_safetensors_header(tensor("[1152921504606846976]", "[0,4611686018427387904]"),
                                               std::uint64_t{1} << 62);
  EXPECT_TRUE(header);  // the layout is sound for a file of that size …
  TemporaryFolder folder;
  test::write_file(folder.path() / "x",
                   file(tensor("[1152921504606846976]", "[0,4611686018427387904]"), "tiny"));
  EXPECT_NE(SafetensorsFile::open(folder.path() / "x").error().message.find("beyond the data's 4 bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace footplate
