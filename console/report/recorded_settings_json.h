#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "protocol/json.h"
#include "protocol/settings.h"

namespace footplate::report {

/// Settings by name as a run's files have them, of whatever version of footplate wrote them: no schema is
/// asked.
using RecordedSettings = std::map<std::string, Setting>;

/// config-K.json. Empty: it isn't there or can't be read. Entries that are no values are passed over.
RecordedSettings read_recorded_settings(const std::filesystem::path& path);

/// {name: value}, as a start's line has what it was given.
RecordedSettings settings_of_values(const Json& json, const std::string& source);

}  // namespace footplate::report
