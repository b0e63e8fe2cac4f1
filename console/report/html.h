#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace footplate::report {

/// What a person sent may hold anything: without what a terminal would act on, and as text for HTML.
std::string clean(const std::string& text);

/// A loss or another figure: four significant digits, "1.900"; empty for NaN.
std::string four_digits(double value);

/// A cell of a table with a class: "n" for numbers, "bad", "quiet".
std::string cell(const std::string& text, const char* kind = "");
std::string colored_cell(const std::string& text, std::size_t color);

/// A table that scrolls by itself where the page is too narrow.
class Table {
 public:
  static constexpr std::size_t kMostRows = 500;

  /// The heads of its columns; one that begins with # is of numbers.
  explicit Table(const std::vector<std::string>& columns);
  /// Its cells. Rows beyond kMostRows are counted.
  void row(const std::string& cells);
  bool empty() const { return rows_ == 0; }
  /// `rest`: where those are that aren't shown.
  std::string html(const std::string& rest = "events.jsonl") const;

 private:
  std::string html_;
  std::size_t rows_ = 0;
};

std::string heading(const std::string& text);
std::string paragraph(const std::string& text, const char* kind = "");

/// The page's style sheet: light, and dark where the reader's system asks for that.
extern const char* const kPageStyle;

}  // namespace footplate::report
