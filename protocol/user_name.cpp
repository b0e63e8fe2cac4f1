#include "protocol/user_name.h"

#include <pwd.h>
#include <unistd.h>

namespace footplate {

std::string user_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry != nullptr && entry->pw_name != nullptr ? entry->pw_name : std::to_string(::geteuid());
}

}  // namespace footplate
