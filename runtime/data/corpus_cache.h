#pragma once

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>

#include "protocol/result.h"

namespace footplate {

/// The file `name` in the cache of prepared corpora ($FOOTPLATE_CACHE, else ~/.cache/footplate/data).
/// Where it isn't there yet, `write` fills it: into a temporary file, renamed once complete, so that
/// nobody ever sees half of it. Errors: no cache folder, no space, or what `write` says.
Result<std::filesystem::path> cached_corpus(const std::string& name,
                                            const std::function<Result<void>(std::ostream&)>& write);

}  // namespace footplate
