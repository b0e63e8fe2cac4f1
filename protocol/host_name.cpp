#include "protocol/host_name.h"

#include <unistd.h>

#include <array>

namespace footplate {

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "localhost";
}

}  // namespace footplate
