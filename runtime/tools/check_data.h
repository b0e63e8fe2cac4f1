#pragma once

namespace footplate {

/// For `footplate check`: whether what the settings on stdin (as of Settings::to_json) name can be had by a
/// run that starts here: the corpus is there, can be read, and is long enough for model.context. A task of
/// the user's own is made, and loads a sample (protocol/task_check.h says what is written meanwhile). Starts
/// no MPI, puts no corpus together and writes nothing. Returns the exit code: 0, or 2 with the reason on
/// stderr.
int check_data();

}  // namespace footplate
