#pragma once

#include <string_view>

namespace footplate {

// What footplate-rank --check-data writes on stderr, a line each, about a task of the user's own: before each
// part of its look kCheckPart and where the task is then, and at last kCheckDone. Where that is missing the
// task has ended the process, whatever the exit code.

inline constexpr std::string_view kCheckPart = "footplate-check: in ";
inline constexpr std::string_view kCheckDone = "footplate-check: done";

/// Where a line that people should know begins.
inline constexpr std::string_view kWarningLine = "footplate: warning: ";
/// A line that the task has logged or printed.
inline constexpr std::string_view kTaskLine = "footplate: the task says: ";

}  // namespace footplate
