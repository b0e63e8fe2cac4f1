#include "console/cli/print_text.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "console/client/render/render.h"

namespace footplate {

bool print_text(const std::string& text) {
  const std::string shown = for_output(text, STDOUT_FILENO);
  for (std::size_t sent = 0; sent < shown.size();) {
    const ssize_t count = ::write(STDOUT_FILENO, shown.data() + sent, shown.size() - sent);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    sent += static_cast<std::size_t>(count);
  }
  return true;
}

Result<int> unwritten(const char* what, int error) {
  if (error == EPIPE) return 0;
  return fail(ErrorKind::failed, std::string("can't write ") + what + " to stdout: " + std::strerror(error));
}

}  // namespace footplate
