#include "console/doctor/finding.h"

#include <array>
#include <utility>

#include "console/client/render/render.h"

namespace footplate {
namespace {

constexpr std::size_t kVerdictWidth = 10;  ///< "left out" and two spaces
constexpr std::size_t kNameWidth = 17;     ///< the longest name and two spaces

std::string padded(std::string text, std::size_t width) {
  text.append(text.size() < width ? width - text.size() : 1, ' ');
  return text;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::good:
      return "good";
    case Verdict::to_mend:
      return "to mend";
    case Verdict::left_out:
      return "left out";
  }
  return "";
}

Check to_mend(Check check, std::string how) {
  check.verdict = Verdict::to_mend;
  check.mend = std::move(how);
  return check;
}

Check to_mend(Check check, std::string found, std::string how) {
  check.found = std::move(found);
  return to_mend(std::move(check), std::move(how));
}

Json to_json(const Check& check) {
  return {{"name", check.name},
          {"verdict", to_string(check.verdict)},
          {"found", check.found},
          {"mend", check.mend.empty() ? Json() : Json(check.mend)},
          {"values", check.values}};
}

std::string to_lines(const Check& check) {
  std::string text = padded(std::string(to_string(check.verdict)), kVerdictWidth) +
                     padded(check.name, kNameWidth) + check.found + "\n";
  if (!check.mend.empty()) text += std::string(kVerdictWidth, ' ') + "mend: " + check.mend + "\n";
  return text;
}

std::string elements_text(std::int64_t elements) {
  const auto count = static_cast<double>(elements);
  if (elements >= 1'000'000) return rounded(count / 1e6, 4) + " M elements";
  if (elements >= 1'000) return rounded(count / 1e3, 4) + " k elements";
  return std::to_string(elements) + " elements";
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 5> kUnits{"bytes", "KiB", "MiB", "GiB", "TiB"};
  constexpr double kStep = 1024;
  std::size_t unit = 0;
  for (; bytes >= kStep && unit + 1 < kUnits.size(); ++unit) bytes /= kStep;
  return rounded(bytes, 3) + " " + kUnits[unit];
}

}  // namespace footplate
