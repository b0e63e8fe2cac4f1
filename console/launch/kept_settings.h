#pragma once

#include <filesystem>
#include <string>

#include "protocol/settings.h"

namespace footplate {

/// Settings that apply at the next start (Applies::restart) as people have set them live: this is that start.
/// Where a run goes on in `directory` its journal says which, else the manifest of the checkpoint `resume`
/// that the run begins from (a path; empty or "auto": none). What the command line of this very start says,
/// and what the environment says, counts for more. Errors (usage): the journal can't be read; then use
/// `settings` as they are.
Result<Settings> with_kept_settings(const Settings& settings, const Schema& schema,
                                    const std::filesystem::path& directory, int start,
                                    const std::string& resume);

}  // namespace footplate
