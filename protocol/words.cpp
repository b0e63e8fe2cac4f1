#include "protocol/words.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace footplate {
namespace {

std::string formatted(const char* format, int digits, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, digits, value);
  return text.data();
}

/// "5e-05" becomes "5e-5".
std::string with_short_exponent(std::string text) {
  const auto e = text.find('e');
  if (e == std::string::npos) return text;
  return text.substr(0, e + 1) + std::to_string(std::stoi(text.substr(e + 1)));
}

}  // namespace

std::string join(const std::vector<std::string>& items, std::string_view between) {
  std::string text;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += between;
    text += items[i];
  }
  return text;
}

std::string rounded(double value, int digits) {
  constexpr double kLargestWhole = 1e15;
  if (std::isnan(value)) return "-";
  if (std::abs(value) >= std::pow(10.0, digits) && std::abs(value) < kLargestWhole)
    return std::to_string(std::llround(value));
  return with_short_exponent(formatted("%.*g", digits, value));
}

std::string loss_text(double value) {
  constexpr int kDecimals = 4;
  constexpr double kLeast = 0.01, kMost = 1e4;
  if (std::isnan(value)) return "nan";
  const double size = std::abs(value);
  const bool fits = size == 0 || (size >= kLeast && size < kMost);
  return fits ? formatted("%.*f", kDecimals, value) : rounded(value);
}

std::string duration(double seconds) {
  constexpr double kLongest = 1e12;  // thirty thousand years: nobody counts them
  if (!(seconds >= 0 && seconds <= kLongest)) return "-";
  const long long total = std::llround(seconds);
  const auto two = [](long long a, const char* unit_a, long long b, const char* unit_b) {
    return std::to_string(a) + unit_a + (b == 0 ? "" : " " + std::to_string(b) + unit_b);
  };
  if (total < 60) return std::to_string(total) + " s";
  if (total < 3600) return two(total / 60, " min", total % 60, " s");
  if (total < 86400) return two(total / 3600, " h", total % 3600 / 60, " min");
  return two(total / 86400, " d", total % 86400 / 3600, " h");
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array kUnits = {"B", "kB", "MB", "GB", "TB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return rounded(value, 3) + " " + kUnits[unit];
}

std::string_view first_bytes(std::string_view text, std::size_t bytes) {
  constexpr std::size_t kLongestCharacter = 4;
  if (text.size() <= bytes) return text;
  for (std::size_t cut = 0; cut < kLongestCharacter && cut <= bytes; ++cut)
    if ((static_cast<unsigned char>(text[bytes - cut]) & 0xc0) != 0x80) return text.substr(0, bytes - cut);
  return text.substr(0, bytes);  // no UTF-8
}

}  // namespace footplate
