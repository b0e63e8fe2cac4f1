#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/result.h"

namespace footplate {

/// Takes the next bytes of a corpus that is being put together. Error (failed): the disk's.
using TakeBytes = std::function<Result<void>(std::string_view bytes)>;

/// Where the cache has, or would have, the file `name`. Error (usage): there is no cache folder.
Result<std::filesystem::path> cached_corpus_path(const std::string& name);

/// The file `name` in the cache of prepared corpora ($FOOTPLATE_CACHE, else ~/.cache/footplate/data).
/// Where it isn't there yet, or hasn't the size `bytes` (none: not known), `write` gives what is in it: it
/// goes into a temporary file, renamed once all of it is on the disk, so that nobody ever sees half of it. Of
/// several processes of a host one writes to the cache at a time, and the others wait for it.
/// Errors: no cache folder, no space, or what `write` says; then nothing is left of it.
Result<std::filesystem::path> cached_corpus(const std::string& name, std::optional<std::uintmax_t> bytes,
                                            const std::function<Result<void>(const TakeBytes&)>& write);

}  // namespace footplate
