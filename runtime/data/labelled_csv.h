#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "protocol/result.h"

namespace footplate {

/// Rows of numbers, each with the number of its class.
struct LabelledRows {
  std::int64_t columns = 0;  ///< the label is none of them
  std::vector<float> values;
  std::vector<std::uint16_t> labels;
};

inline constexpr int kMostClasses = 1000;

/// A CSV file, plain or gzipped: numbers separated by commas, the last of a line its label, a whole number
/// from 0 on. A first line with something that is no number is a head, and passed over. Errors (usage), each
/// with the path and the line: what read_file_or_gzip() says, no rows, a line of another length, something
/// that is no finite number of float32, a label that isn't 0 … 999.
Result<LabelledRows> read_labelled_csv(const std::filesystem::path& path);

}  // namespace footplate
