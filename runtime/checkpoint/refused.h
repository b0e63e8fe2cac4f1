#pragma once

#include <filesystem>
#include <string>

#include "protocol/result.h"

namespace footplate {

/// What is said of a file or folder of a checkpoint that can't be taken.
inline tl::unexpected<Error> refused(const std::filesystem::path& path, const std::string& reason) {
  return fail(ErrorKind::failed, path.string() + " is refused: " + reason);
}

}  // namespace footplate
