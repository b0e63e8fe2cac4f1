#include "runtime/checkpoint/slices.h"

#include <algorithm>
#include <set>

#include "fixture.h"

namespace footplate {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

std::int64_t elements_of(const TensorSpec& spec) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : spec.shape) elements *= extent;
  return elements;
}

std::uint64_t bytes_of(const std::vector<TensorSpec>& tensors, const std::vector<TensorSlice>& slices) {
  std::uint64_t bytes = 0;
  for (const TensorSlice& slice : slices)
    bytes += static_cast<std::uint64_t>(slice.count) * size_of(tensors[slice.tensor].type);
  return bytes;
}

/// What each tensor is cut into by all parts, in their order.
std::vector<std::vector<TensorSlice>> pieces_of_each(const std::vector<TensorSpec>& tensors, int parts) {
  std::vector<std::vector<TensorSlice>> pieces(tensors.size());
  for (int part = 0; part < parts; ++part)
    for (const TensorSlice& slice : slices_of_part(tensors, part, parts))
      pieces[slice.tensor].push_back(slice);
  return pieces;
}

const std::vector<TensorSpec> kModel{{"model/embedding", TensorType::float32, {1000, 1024}},
                                     {"model/bias", TensorType::float32, {1024}},
                                     {"model/nothing", TensorType::float32, {0, 3}},
                                     {"model/half", TensorType::bfloat16, {3, kMiB}},
                                     {"optim/step", TensorType::int64, {}},
                                     {"model/none", TensorType::uint8, {0}}};

TEST(Slices, AllPartsTogetherAreEveryTensorOnce) {
  for (int parts = 1; parts <= 70; ++parts) {
    const auto pieces = pieces_of_each(kModel, parts);
    for (std::size_t i = 0; i < kModel.size(); ++i) {
      ASSERT_FALSE(pieces[i].empty()) << kModel[i].name << " of " << parts;
      std::int64_t end = 0;
      for (const TensorSlice& slice : pieces[i]) {
        EXPECT_EQ(slice.first, end) << kModel[i].name << " of " << parts;
        end += slice.count;
      }
      EXPECT_EQ(end, elements_of(kModel[i])) << kModel[i].name << " of " << parts;
    }
  }
}

TEST(Slices, SmallTensorsStayWhole) {
  for (int parts = 1; parts <= 70; ++parts) {
    const auto pieces = pieces_of_each(kModel, parts);
    for (const std::size_t small : {1u, 2u, 4u, 5u}) EXPECT_EQ(pieces[small].size(), 1u) << parts;
  }
}

TEST(Slices, PartsAreOfTheSameSize) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < kModel.size(); ++i) total += bytes_of(kModel, {{i, 0, elements_of(kModel[i])}});
  for (int parts = 1; parts <= 8; ++parts)
    for (int part = 0; part < parts; ++part) {
      const std::uint64_t bytes = bytes_of(kModel, slices_of_part(kModel, part, parts));
      EXPECT_LE(bytes, total / static_cast<std::uint64_t>(parts) + kMiB) << part << " of " << parts;
      EXPECT_GE(bytes + kMiB, total / static_cast<std::uint64_t>(parts)) << part << " of " << parts;
    }
}

TEST(Slices, OnePartIsEverythingUncut) {
  const auto slices = slices_of_part(kModel, 0, 1);
  ASSERT_EQ(slices.size(), kModel.size());
  for (std::size_t i = 0; i < slices.size(); ++i)
    EXPECT_EQ(slices[i], (TensorSlice{i, 0, elements_of(kModel[i])}));
}

TEST(Slices, NoTensorsAreNoSlices) {
  for (int part = 0; part < 3; ++part) EXPECT_TRUE(slices_of_part({}, part, 3).empty());
}

TEST(Slices, AFileTellsWhatItsSlicesAreOf) {
  const std::vector<std::uint8_t> bytes{1, 2, 3};
  const auto content = std::as_bytes(std::span(bytes));
  const std::vector<TensorView> tensors{
      {"gr\"o\xc3\x9f\x65", TensorType::uint8, {3}, content, SliceOf{{2, 4}, 5}},
      {"whole", TensorType::uint8, {3, 1}, content},
      {"of_m@0", TensorType::uint8, {3}, content, SliceOf{{9}, 0, "m"}},
      {"of_m@6", TensorType::uint8, {3}, content, SliceOf{{9}, 6, "m"}}};
  const auto start = safetensors_header(tensors, {{"format", "pt"}});
  ASSERT_TRUE(start) << start.error().message;
  const auto header = parse_safetensors_header(std::string_view(*start).substr(8), 12);
  ASSERT_TRUE(header) << header.error().message;
  EXPECT_EQ(header->metadata.at("format"), "pt");
  EXPECT_EQ(header->tensors[0].slice_of, (SliceOf{{2, 4}, 5}));
  EXPECT_EQ(header->tensors[1].slice_of, std::nullopt);
  EXPECT_EQ(header->tensors[2].slice_of, (SliceOf{{9}, 0, "m"}));
  EXPECT_EQ(header->tensors[3].slice_of, (SliceOf{{9}, 6, "m"}));
}

TEST(Slices, WhatTheySayThatTheyAreOfHasToBeAName) {
  const std::vector<std::uint8_t> bytes{1, 2, 3};
  const std::vector<TensorView> tensors{{"a", TensorType::uint8, {3}, std::as_bytes(std::span(bytes))}};
  const std::vector<std::string> no_names{
      R"("")", "1", "null", R"(["a"])", '"' + std::string(1025, 'x') + '"', R"("m", "more": 1)"};
  for (const std::string& of : no_names) {
    const auto start = safetensors_header(
        tensors, {{"footplate.slices", R"({"a": {"first": 0, "shape": [9], "of": )" + of + "}}"}});
    ASSERT_FALSE(start) << of;  // it reads what it has written
    EXPECT_EQ(start.error().message, "tensor 'a': what it is a slice of can't be read");
  }
}

TEST(Slices, TheWriterRefusesASliceThatIsBeyondItsTensor) {
  const std::vector<std::uint8_t> bytes{1, 2, 3};
  const std::vector<TensorView> tensors{
      {"a", TensorType::uint8, {3}, std::as_bytes(std::span(bytes)), SliceOf{{2, 2}, 2}}};
  const auto start = safetensors_header(tensors);
  ASSERT_FALSE(start);
  EXPECT_EQ(start.error().message, "tensor 'a': elements 2 to 5 of U8[2, 2]");
}

}  // namespace
}  // namespace footplate
