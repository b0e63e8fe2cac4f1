#include "runtime/checkpoint/safetensors.h"

#include <limits>

#include "fixture.h"
#include "runtime/checkpoint/sha256.h"

namespace footplate {
namespace {

using test::TemporaryFolder;

std::string file_of(std::span<const TensorView> tensors) {
  std::string text = safetensors_header(tensors).value();
  for (const auto& tensor : tensors)
    text.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  return text;
}

TEST(Safetensors, RoundTripKeepsEveryBit) {
  TemporaryFolder folder;
  const std::vector<float> floats{0.0f, -0.0f, std::numeric_limits<float>::quiet_NaN(), 1e-45f};
  const std::vector<std::int64_t> integers{std::numeric_limits<std::int64_t>::min(), -1};
  const std::vector<std::uint8_t> bytes{1, 2, 3};
  const std::vector<TensorView> tensors{
      {"bytes", TensorType::uint8, {3}, std::as_bytes(std::span(bytes))},
      {"größe \"x\" \\ y", TensorType::float32, {1, 4}, std::as_bytes(std::span(floats))},
      {"empty", TensorType::float32, {0, 7}, {}},
      {"ints", TensorType::int64, {2}, std::as_bytes(std::span(integers))},
  };
  test::write_file(folder.path() / "x.safetensors", file_of(tensors));
  const auto file = SafetensorsFile::open(folder.path() / "x.safetensors");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->header().tensors.size(), tensors.size());
  for (const auto& expected : tensors) {
    const auto& entries = file->header().tensors;
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const auto& e) { return e.spec.name == expected.name; });
    ASSERT_NE(found, entries.end()) << expected.name;
    EXPECT_EQ(found->spec.type, expected.type);
    EXPECT_EQ(found->spec.shape, expected.shape);
  }
  test::Contents contents{{"empty", ""}};
  const auto hash = file->read([&](const TensorEntry& entry, std::uint64_t at, auto block) {
    EXPECT_EQ(contents[entry.spec.name].size(), at);
    contents[entry.spec.name].append(reinterpret_cast<const char*>(block.data()), block.size());
  });
  ASSERT_TRUE(hash) << hash.error().message;
  EXPECT_EQ(contents, test::contents_of(tensors));
  const std::string whole = file_of(tensors);
  EXPECT_EQ(*hash, sha256_hex(std::as_bytes(std::span(whole))));
}

TEST(Safetensors, ReadingSeesThatTheHeaderHasChanged) {
  TemporaryFolder folder;
  const std::vector<std::uint8_t> bytes{1, 2, 3};
  const std::vector<TensorView> tensors{{"bytes", TensorType::uint8, {3}, std::as_bytes(std::span(bytes))}};
  const auto path = folder.path() / "x.safetensors";
  std::string text = file_of(tensors);
  test::write_file(path, text);
  const auto file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  text[text.find("bytes")] = 'B';
  std::ofstream(path, std::ios::binary | std::ios::in) << text;  // the same file, not another one
  const auto hash = file->read();
  ASSERT_FALSE(hash);
  EXPECT_NE(hash.error().message.find("it changed while it was read"), std::string::npos);
}

TEST(Safetensors, HeaderIsPaddedSoThatDataIsAligned) {
  for (std::size_t length = 1; length < 20; ++length) {
    const std::vector<TensorView> tensors{{std::string(length, 'a'), TensorType::uint8, {0}, {}}};
    EXPECT_EQ(safetensors_header(tensors).value().size() % 8, 0u);
  }
}

TEST(Safetensors, MetadataAndNoTensorsAreAllowed) {
  const std::string start = safetensors_header({}, {{"format", "pt"}}).value();
  const auto header = parse_safetensors_header(start.substr(8), 0);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->metadata.at("format"), "pt");
  EXPECT_TRUE(header->tensors.empty());
}

TEST(Safetensors, TensorsMayBeListedInAnyOrder) {
  const auto header = parse_safetensors_header(
      R"({"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]},"a":{"data_offsets":[0,1],"shape":[],"dtype":"BOOL"}})",
      3);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->tensors[0].spec.name, "a");
  EXPECT_EQ(header->tensors[1].begin, 1u);
}

TEST(Safetensors, WriterRefusesWhatTheReaderWould) {
  const std::vector<std::uint8_t> byte{1};
  const auto view = std::as_bytes(std::span(byte));
  const auto message = [](std::vector<TensorView> tensors) {
    const auto header = safetensors_header(tensors);
    return header ? std::string("accepted") : header.error().message;
  };
  EXPECT_EQ(message({{"a", TensorType::uint8, {1}, view}, {"a", TensorType::uint8, {1}, view}}),
            "tensor 'a' twice");
  EXPECT_EQ(message({{"a", TensorType::float32, {1}, view}}), "tensor 'a': F32[1] doesn't fit its 1 bytes");
  EXPECT_EQ(message({{"a", TensorType::uint8, {-1}, view}}), "tensor 'a': U8[-1] doesn't fit its 1 bytes");
  EXPECT_EQ(message({{"", TensorType::uint8, {1}, view}}), "an empty name");
  EXPECT_EQ(message({{"a\x1b", TensorType::uint8, {1}, view}}), "a control character in a name");
  EXPECT_EQ(message({{"a", TensorType::uint8, std::vector<std::int64_t>(17, 1), view}}),
            "tensor 'a': more than 16 dimensions");
}

TEST(Tensor, SizesAreComputedWithoutOverflow) {
  const std::int64_t large = std::int64_t{1} << 40;
  EXPECT_EQ(bytes_of(TensorType::float32, std::vector<std::int64_t>{}), 4u);
  EXPECT_EQ(bytes_of(TensorType::bfloat16, std::vector<std::int64_t>{3, 5}), 30u);
  EXPECT_EQ(bytes_of(TensorType::float64, std::vector<std::int64_t>{large, large}), std::nullopt);
  EXPECT_EQ(bytes_of(TensorType::float64, std::vector<std::int64_t>{-1}), std::nullopt);
  EXPECT_EQ(describe(TensorType::float8_e4m3, std::vector<std::int64_t>{2, 3}), "F8_E4M3[2, 3]");
}

}  // namespace
}  // namespace footplate
