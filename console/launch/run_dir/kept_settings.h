#pragma once

#include <filesystem>
#include <string>

#include "protocol/settings.h"

namespace footplate {

/// Settings that apply at the next start (Applies::restart) as people have set them live: this is that start.
/// The journal of the run in `directory` says which, before it the manifest of the checkpoint `resume` that
/// the run begins from (a path; empty or "auto": what its first start kept of one). What a command line has
/// said since, this start's or an earlier one's, and what the environment says, counts for more. Errors
/// (usage): the journal can't be read; then use `settings` as they are.
Result<Settings> with_kept_settings(const Settings& settings, const Schema& schema,
                                    const std::filesystem::path& directory, int start,
                                    const std::string& resume);

/// What the command line of `start` repeats of the last `footplate run` in `directory`, name and value, gets
/// the start that had it first as its source: then what was changed live since counts for more. Keeps this
/// command line in command-line.json, for the next start. Errors: the disk.
Result<void> mark_repeated(Settings& settings, const std::filesystem::path& directory, int start);

}  // namespace footplate
