#include "runtime/comm/doorbell.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace footplate {
namespace {

std::filesystem::path bell(const std::filesystem::path& directory, int rank) {
  return directory / fmt::format("bell-{}", rank);
}

std::optional<sockaddr_un> address_of(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.c_str(), path.native().size() + 1);
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

}  // namespace

Result<std::unique_ptr<Doorbell>> Doorbell::install(const std::filesystem::path& directory, int rank) {
  const auto path = bell(directory, rank);
  const auto address = address_of(path);
  if (!address)
    return fail(
        ErrorKind::failed,
        fmt::format("the path of a socket has at most {} bytes, {} has {}; choose a shorter folder for "
                    "temporary files (TMPDIR)",
                    sizeof(sockaddr_un::sun_path) - 1, path.string(), path.native().size()));
  const int fd = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(ErrorKind::failed, fmt::format("socket: {}", std::strerror(errno)));
  ::unlink(path.c_str());
  if (::bind(fd, generic(*address), sizeof *address) != 0) {
    const int error = errno;
    ::close(fd);
    return fail(ErrorKind::failed, fmt::format("can't bind {}: {}", path.string(), std::strerror(error)));
  }
  return std::unique_ptr<Doorbell>(new Doorbell(directory, rank, fd));
}

Doorbell::~Doorbell() {
  ::close(fd_);
  ::unlink(bell(directory_, rank_).c_str());
}

void Doorbell::silence() {
  std::array<char, 8> ring;
  while (::recv(fd_, ring.data(), ring.size(), MSG_DONTWAIT) > 0) {
  }
}

void Doorbell::ring(int rank) {
  const auto address = address_of(bell(directory_, rank));
  const char one = 1;
  if (address) ::sendto(fd_, &one, 1, MSG_DONTWAIT | MSG_NOSIGNAL, generic(*address), sizeof *address);
}

}  // namespace footplate
