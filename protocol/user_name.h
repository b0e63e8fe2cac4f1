#pragma once

#include <string>

namespace footplate {

/// Of whoever runs this process (its effective user); the number where there is no name. Not safe beside
/// other look-ups of users in the process (getpwuid).
std::string user_name();

}  // namespace footplate
