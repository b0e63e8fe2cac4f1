#include "runtime/device/peak_flops.h"

#include <cctype>

namespace footplate {
namespace {

struct Known {
  std::string_view name;
  double bf16, fp32;
};

/// The first whose name is part of the device's counts: what is part of another one comes behind it.
constexpr Known kKnown[] = {
    {"H100 PCIe", 756, 51}, {"H100 NVL", 835, 60}, {"H200 NVL", 835, 60},     {"H100", 989, 67},
    {"H200", 989, 67},      {"GH200", 989, 67},    {"H800", 989, 67},         {"A100", 312, 19.5},
    {"A800", 312, 19.5},    {"A30", 165, 10.3},    {"A10", 125, 31.2},        {"L40S", 362, 91.6},
    {"L40", 181, 90.5},     {"L4", 121, 30.3},     {"RTX 4090", 165.2, 82.6}, {"RTX 3090", 71, 35.6},
};

/// "A10" is in "NVIDIA A10", and not in "A100" or "RTX A1000".
bool has_word(std::string_view text, std::string_view word) {
  const auto at = text.find(word);
  if (at == std::string_view::npos) return false;
  const bool ends = at + word.size() == text.size() ||
                    std::isalnum(static_cast<unsigned char>(text[at + word.size()])) == 0;
  const bool begins = at == 0 || std::isalnum(static_cast<unsigned char>(text[at - 1])) == 0;
  return begins && ends;
}

}  // namespace

std::optional<double> peak_tflops(std::string_view device_name, Precision precision) {
  for (const Known& device : kKnown)
    if (has_word(device_name, device.name)) return precision == Precision::bf16 ? device.bf16 : device.fp32;
  return std::nullopt;
}

}  // namespace footplate
