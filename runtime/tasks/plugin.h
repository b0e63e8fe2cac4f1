#pragma once

#include <filesystem>
#include <string>

#include "footplate/task.h"
#include "protocol/result.h"
#include "protocol/task_name.h"

namespace footplate {

/// The task that a shared library holds (FOOTPLATE_TASK). The library stays open for as long as the process
/// lives. Errors (usage), each with what helps: no such file; not a plugin; built for another interface or
/// with another LibTorch, which is found out before the library is opened; what the loader says.
Result<const v1::Descriptor*> load_plugin(const std::filesystem::path& path);

}  // namespace footplate
