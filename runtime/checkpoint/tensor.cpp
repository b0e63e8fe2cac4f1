#include "runtime/checkpoint/tensor.h"

#include <array>

namespace footplate {
namespace {

struct TypeRow {
  TensorType type;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<TypeRow, 15> kTypes{{
    {TensorType::boolean, "BOOL", 1},
    {TensorType::uint8, "U8", 1},
    {TensorType::int8, "I8", 1},
    {TensorType::float8_e5m2, "F8_E5M2", 1},
    {TensorType::float8_e4m3, "F8_E4M3", 1},
    {TensorType::int16, "I16", 2},
    {TensorType::uint16, "U16", 2},
    {TensorType::float16, "F16", 2},
    {TensorType::bfloat16, "BF16", 2},
    {TensorType::int32, "I32", 4},
    {TensorType::uint32, "U32", 4},
    {TensorType::float32, "F32", 4},
    {TensorType::float64, "F64", 8},
    {TensorType::int64, "I64", 8},
    {TensorType::uint64, "U64", 8},
}};

constexpr bool rows_follow_the_enum() {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (kTypes[i].type != static_cast<TensorType>(i)) return false;
  return true;
}
static_assert(rows_follow_the_enum());

}  // namespace

std::string_view to_string(TensorType type) {
  return kTypes[static_cast<std::size_t>(type)].name;
}

std::size_t size_of(TensorType type) {
  return kTypes[static_cast<std::size_t>(type)].bytes;
}

std::optional<TensorType> tensor_type_from_string(std::string_view text) {
  for (const auto& row : kTypes)
    if (row.name == text) return row.type;
  return std::nullopt;
}

std::optional<std::uint64_t> bytes_of(TensorType type, std::span<const std::int64_t> shape) {
  std::uint64_t bytes = size_of(type);
  for (const std::int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes))
      return std::nullopt;
  return bytes;
}

std::string describe(TensorType type, std::span<const std::int64_t> shape) {
  std::string text(to_string(type));
  text += "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

}  // namespace footplate
