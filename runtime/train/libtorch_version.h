#pragma once

#include <string>

namespace footplate {

/// "2.11.0": of the LibTorch in this process, not of the one it was compiled with.
std::string libtorch_version();

}  // namespace footplate
