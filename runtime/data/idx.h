#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// Bytes in an array of some dimensions: images are [images, rows, columns], labels [labels].
struct Idx {
  std::vector<std::int64_t> shape;
  std::vector<std::uint8_t> values;
};

/// A file in the IDX format of MNIST, plain or gzipped: 0, 0, the type of its values (8: bytes), the number
/// of dimensions, each size in four bytes, the first the highest, and the values. Errors (usage), each with
/// the path: what read_file_or_gzip() says, another type, other than `dimensions`, bytes that are missing or
/// too many.
Result<Idx> read_idx(const std::filesystem::path& path, std::size_t dimensions);

}  // namespace footplate
