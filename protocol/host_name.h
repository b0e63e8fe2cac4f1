#pragma once

#include <string>

namespace footplate {

/// This host's; "localhost" where the system doesn't tell.
std::string host_name();

}  // namespace footplate
