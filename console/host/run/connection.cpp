#include "console/host/run/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace footplate::host {

short Connection::events() const {
  return static_cast<short>((reading_ ? POLLIN : 0) | (writer_.empty() ? 0 : POLLOUT));
}

Connection::Read Connection::read() {
  constexpr int kPieces = 4;  // so that one busy peer can't keep the loop from the others
  std::array<char, 65536> bytes;
  for (int i = 0; i < kPieces; ++i) {
    const ssize_t count = ::recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return i == 0 ? Read::nothing : Read::some;
    if (count <= 0) return Read::end;
    reader_.append({bytes.data(), static_cast<std::size_t>(count)});
  }
  return Read::some;
}

}  // namespace footplate::host
