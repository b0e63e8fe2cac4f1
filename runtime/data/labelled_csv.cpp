#include "runtime/data/labelled_csv.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/data/gzip_file.h"

namespace footplate {
namespace {

constexpr std::size_t kQuotedCell = 40;  ///< characters of a bad cell that an error shows

std::string_view without_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// The text before the next `separator`, which is taken off `rest`.
std::string_view take_until(std::string_view& rest, char separator) {
  const std::size_t end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return part;
}

/// What is wrong with a cell of a line.
struct BadCell {
  std::string text;        ///< quoted, with its column
  bool is_number = false;  ///< one that float32 has no finite value for
};

/// Finite as float32, too. Else nothing; `is_number`: it is a number nevertheless.
std::optional<double> finite_number(std::string_view cell, bool& is_number) {
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  is_number = error != std::errc::invalid_argument && end == cell.data() + cell.size();
  if (!is_number || error != std::errc() || !std::isfinite(static_cast<float>(value))) return std::nullopt;
  return value;
}

/// The numbers of a line. `bad`: the first cell that is no number at all, else the first that isn't finite.
std::vector<double> numbers_of(std::string_view line, std::optional<BadCell>& bad) {
  std::vector<double> numbers;
  for (bool more = true; more;) {
    more = line.find(',') != std::string_view::npos;
    const std::string_view cell = without_blanks(take_until(line, ','));
    bool is_number = false;
    const auto number = finite_number(cell, is_number);
    if (!number && (!bad || (bad->is_number && !is_number)))
      bad = BadCell{fmt::format("'{}' in column {}", cell.substr(0, kQuotedCell), numbers.size() + 1),
                    is_number};
    numbers.push_back(number.value_or(0));
  }
  return numbers;
}

/// What is wrong with a row that comes after `rows`; empty: nothing.
std::string wrong_row(const LabelledRows& rows, const std::vector<double>& numbers,
                      const std::optional<BadCell>& bad) {
  if (bad) return bad->text + " is no finite number of float32";
  const auto columns = static_cast<std::int64_t>(numbers.size()) - 1;
  if (columns < 1) return "one number; at least one and a label are wanted";
  if (rows.columns != 0 && columns != rows.columns)
    return fmt::format("{} numbers, the lines before it have {}", numbers.size(), rows.columns + 1);
  const double label = numbers.back();
  if (!(label >= 0 && label < kMostClasses) || label != std::floor(label))
    return fmt::format("the label {} (the last number); labels are whole numbers, 0 to {}", label,
                       kMostClasses - 1);
  return "";
}

}  // namespace

Result<LabelledRows> read_labelled_csv(const std::filesystem::path& path) {
  const auto file = read_file_or_gzip(path);
  if (!file) return tl::unexpected(file.error());
  std::string_view text(reinterpret_cast<const char*>(file->data()), file->size());
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // as spreadsheets put it before UTF-8
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  LabelledRows rows;
  for (int line = 1; !text.empty(); ++line) {
    const std::string_view row = without_blanks(take_until(text, '\n'));
    if (row.empty()) continue;
    std::optional<BadCell> bad;
    const std::vector<double> numbers = numbers_of(row, bad);
    if (line == 1 && bad && !bad->is_number) continue;  // a head
    if (const std::string wrong = wrong_row(rows, numbers, bad); !wrong.empty())
      return fail(ErrorKind::usage, fmt::format("{}, line {}: {}", path.string(), line, wrong));
    rows.columns = static_cast<std::int64_t>(numbers.size()) - 1;
    for (std::size_t i = 0; i + 1 < numbers.size(); ++i)
      rows.values.push_back(static_cast<float>(numbers[i]));
    rows.labels.push_back(static_cast<std::uint16_t>(numbers.back()));
  }
  if (rows.labels.empty())
    return fail(ErrorKind::usage, fmt::format("{} has no rows of numbers", path.string()));
  return rows;
}

}  // namespace footplate
