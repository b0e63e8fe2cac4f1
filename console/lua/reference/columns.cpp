#include "console/lua/reference/columns.h"

#include <algorithm>

namespace footplate {
namespace {

constexpr std::size_t kWidest = 32;

std::vector<std::size_t> widths_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (std::size_t& width : widths) width = std::min(width, kWidest);
  return widths;
}

}  // namespace

std::string in_columns(const std::vector<std::vector<std::string>>& rows) {
  const auto widths = widths_of(rows);
  std::string text;
  for (const auto& row : rows) {
    if (!text.empty()) text += '\n';
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(std::max(widths[i], row[i].size()) - row[i].size() + 2, ' ');
    }
  }
  return text;
}

}  // namespace footplate
