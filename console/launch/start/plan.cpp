#include "console/launch/start/plan.h"

#include <sys/random.h>

#include <array>
#include <cstdio>

namespace footplate {

Result<std::string> new_run_id() {
  std::array<unsigned char, 4> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return fail(ErrorKind::failed, "the system gives no random numbers");
  std::array<char, 9> text{};
  std::snprintf(text.data(), text.size(), "%02x%02x%02x%02x", bytes[0], bytes[1], bytes[2], bytes[3]);
  return std::string(text.data());
}

}  // namespace footplate
