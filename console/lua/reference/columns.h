#pragma once

#include <string>
#include <vector>

namespace footplate {

/// Rows of texts, one below the other in columns with two blanks between: each as wide as its longest text,
/// at most 32 (of ASCII), beyond which a text moves only its own row. The last column isn't padded.
std::string in_columns(const std::vector<std::vector<std::string>>& rows);

}  // namespace footplate
