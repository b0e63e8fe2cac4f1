#pragma once

#include <filesystem>
#include <vector>

#include "protocol/nccl/variables.h"

namespace footplate {

// NCCL's own files, which it reads into its environment as it starts (src/misc/param.cc, initEnvFunc). What
// they say counts as the environment's, for a name that is neither there nor in a file before.

/// The files that NCCL reads on this host for this user, in the order in which they count: $NCCL_CONF_FILE,
/// or where that isn't set ~/.nccl.conf (of the account, whatever HOME says), then /etc/nccl.conf. Those that
/// can't be read, or say nothing, are left out, as NCCL does without a word.
std::vector<VariableFile> nccl_files(const Environment& environment);

/// Lines NAME=value as NCCL takes them: no blanks around, the first of a name counts, '#' at the very start
/// of a line makes it a comment. Of a file that is no regular one, and past 1 MiB: nothing.
Environment read_variable_file(const std::filesystem::path& path);

}  // namespace footplate
