#include "runtime/train/libtorch_version.h"

#include <ATen/Version.h>

namespace footplate {

std::string libtorch_version() {
  // The library says it in the text about its build only: "… TORCH_VERSION=2.11.0, …".
  const std::string build = at::show_config();
  constexpr std::string_view kLabel = "TORCH_VERSION=";
  const auto label = build.find(kLabel);
  if (label == std::string::npos) return "unknown";
  const auto start = label + kLabel.size();
  return build.substr(start, build.find_first_of(", \n", start) - start);
}

}  // namespace footplate
