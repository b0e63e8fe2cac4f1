#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "runtime/records/batch_line.h"

namespace footplate {
namespace {

constexpr double kSecondsPerMinute = 60;
constexpr double kSecondsPerHour = 3600;
constexpr double kSecondsPerDay = 86400;
constexpr double kLongest = 1e9;  ///< seconds; beyond it nobody counts

std::string formatted(const char* format, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

/// "1.00e-03" -> "1e-3"
std::string shorten_exponent(const std::string& text) {
  const auto e = text.find('e');
  std::string mantissa = text.substr(0, e);
  if (mantissa.find('.') != std::string::npos) {
    mantissa.erase(mantissa.find_last_not_of('0') + 1);
    if (mantissa.back() == '.') mantissa.pop_back();
  }
  return mantissa + "e" + std::to_string(std::stoi(text.substr(e + 1)));
}

/// Two numbers of which the second has two digits: "3m12s".
std::string pair(double seconds, double large, char large_unit, double small, char small_unit) {
  const auto whole = static_cast<long long>(seconds);
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%lld%c%02lld%c", whole / static_cast<long long>(large), large_unit,
                whole % static_cast<long long>(large) / static_cast<long long>(small), small_unit);
  return text.data();
}

}  // namespace

std::string short_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double size = std::abs(value);
  if (size != 0 && (size < 0.01 || size >= 1e6)) return shorten_exponent(formatted("%.2e", value));
  if (size >= 100) return formatted("%.0f", value);
  return formatted("%.3g", value);
}

std::string count_text(double value) {
  if (!std::isfinite(value)) return short_number(value);
  constexpr std::array<std::pair<double, char>, 3> kUnits{{{1e9, 'G'}, {1e6, 'M'}, {1e3, 'k'}}};
  for (const auto& [factor, unit] : kUnits)
    if (std::abs(value) >= factor) return formatted("%.1f", value / factor) + unit;
  return formatted("%.0f", value);
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds > kLongest) return "?";
  seconds = std::max(0.0, std::round(seconds));
  if (seconds < kSecondsPerMinute) return formatted("%.0fs", seconds);
  if (seconds < kSecondsPerHour) return pair(seconds, kSecondsPerMinute, 'm', 1, 's');
  if (seconds < kSecondsPerDay) return pair(seconds, kSecondsPerHour, 'h', kSecondsPerMinute, 'm');
  return pair(seconds, kSecondsPerDay, 'd', kSecondsPerHour, 'h');
}

std::string plain(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 … U+009F, which act like ESC on some terminals.
    const bool c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1) ++i;
    if (byte == '\n' || byte == '\t')
      result += ' ';
    else if (byte >= 0x20 && byte != 0x7f && !c1)
      result += text[i];
    else
      result += '?';
  }
  return result;
}

}  // namespace footplate
