#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace footplate {

/// Element types as safetensors names them.
enum class TensorType {
  boolean,
  uint8,
  int8,
  float8_e5m2,
  float8_e4m3,
  int16,
  uint16,
  float16,
  bfloat16,
  int32,
  uint32,
  float32,
  float64,
  int64,
  uint64,
};

/// "F32", "I64", … and back; nothing for a name that the format doesn't have.
std::string_view to_string(TensorType type);
std::optional<TensorType> tensor_type_from_string(std::string_view text);

/// Bytes of one element.
std::size_t size_of(TensorType type);

/// Bytes of a whole tensor; nothing where the product overflows 64 bits. A shape of no dimensions is
/// one element.
std::optional<std::uint64_t> bytes_of(TensorType type, std::span<const std::int64_t> shape);

/// "F32[4, 128]": for messages.
std::string describe(TensorType type, std::span<const std::int64_t> shape);

/// Which elements of a larger tensor something is: those from `first` on, in row-major order.
struct SliceOf {
  std::vector<std::int64_t> shape;  ///< of the whole tensor
  std::int64_t first = 0;
  std::string name =
      {};  ///< of the whole tensor, where a file has several slices of it; empty: the slice's own
  bool operator==(const SliceOf&) const = default;
};

/// A named tensor in host memory, row-major, contiguous, little-endian. Owns nothing.
struct TensorView {
  std::string name;
  TensorType type = TensorType::float32;
  std::vector<std::int64_t> shape;  ///< of a slice: its number of elements
  std::span<const std::byte> bytes;
  std::optional<SliceOf> slice_of = {};  ///< nothing: it is the whole tensor
};

/// The same without its content: what a reader expects.
struct TensorSpec {
  std::string name;
  TensorType type = TensorType::float32;
  std::vector<std::int64_t> shape;
};

}  // namespace footplate
