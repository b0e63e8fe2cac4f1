#pragma once

#include <filesystem>

#include "protocol/messages/event.h"

namespace footplate::host {

/// Puts a line of metrics into the latest values. With an evaluation's, what went wrong in the one before is
/// over.
void merge_metrics(LoggedMetrics& latest, const LoggedMetrics& line);

/// The latest value of each metric by the end of metrics.jsonl: what a new console starts with. Empty where
/// there is no file.
LoggedMetrics latest_metrics(const std::filesystem::path& path);

}  // namespace footplate::host
