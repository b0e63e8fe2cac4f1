#include "console/client/link/run_connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace footplate {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// How long one write may take: the console reads at once or is gone.
constexpr timeval kSendLimit{10, 0};

int remaining_ms(Deadline deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now()).count();
  return static_cast<int>(std::clamp<long>(left, 0, 1'000'000));
}

std::string lost() {
  return "the console closed the connection: ";
}

/// Only the run's owner and root may be at the other end: /tmp is everybody's.
bool peer_is_trusted(int fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == ::getuid() || peer.uid == 0 || ::getuid() == 0;
}

Result<void> check_hello(const ConsoleHello& hello, const std::string& path) {
  if (hello.product != "footplate") return fail(ErrorKind::unreachable, path + " is not a footplate console");
  if (hello.protocol != kProtocolVersion)
    return fail(ErrorKind::unreachable, "the run speaks protocol " + hello.protocol.dump() +
                                            ", this program " + std::to_string(kProtocolVersion) +
                                            "; use the footplate that the run was started with");
  return {};
}

}  // namespace

Connection::Connection(Connection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      reader_(std::move(other.reader_)),
      hello_(std::move(other.hello_)),
      next_id_(other.next_id_) {}

Connection::~Connection() {
  if (fd_ >= 0) ::close(fd_);
}

Result<Connection> Connection::open(const std::string& socket_path, Deadline deadline) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.empty() || socket_path.size() >= sizeof(address.sun_path))
    return fail(ErrorKind::unreachable, "the path of the socket is empty or too long: '" + socket_path + "'");
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  // A console that hangs accepts nobody: where its queue is full this fails at once, and doesn't wait.
  Connection connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(connection.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return fail(ErrorKind::unreachable, "can't connect to " + socket_path + ": " + std::strerror(errno));
  ::fcntl(connection.fd_, F_SETFL, ::fcntl(connection.fd_, F_GETFL) & ~O_NONBLOCK);
  ::setsockopt(connection.fd_, SOL_SOCKET, SO_SNDTIMEO, &kSendLimit, sizeof(kSendLimit));
  if (!peer_is_trusted(connection.fd_))
    return fail(ErrorKind::unreachable, socket_path + " belongs to another user; not speaking to it");
  const auto line = connection.next_line(deadline, -1);
  if (!line) return tl::unexpected(line.error());
  if (!*line) return fail(ErrorKind::timed_out, "the console at " + socket_path + " said nothing in time");
  const ConsoleLine first = console_line_from_json(**line);
  if (const auto* answer = std::get_if<RequestAnswer>(&first); answer != nullptr && !answer->value)
    return tl::unexpected(answer->value.error());
  ConsoleHello& hello = connection.hello_;
  if (!read_json(**line, hello))
    return fail(ErrorKind::unreachable, socket_path + " is not a footplate console");
  if (auto good = check_hello(hello, socket_path); !good) return tl::unexpected(good.error());
  return connection;
}

Result<void> Connection::send(const ClientRequest& request, int id) {
  const std::string line = to_line(to_json(request, id));
  if (line.size() > kMaxFrameBytes)
    return fail(ErrorKind::usage, "too long to send: " + std::to_string(line.size()) + " bytes, at most " +
                                      std::to_string(kMaxFrameBytes));
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::send(fd_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail(ErrorKind::unreachable, lost() + std::strerror(errno));
    sent += static_cast<std::size_t>(count);
  }
  return {};
}

Result<std::optional<ConsoleLine>> Connection::receive(Deadline deadline, int wake_fd) {
  const auto line = next_line(deadline, wake_fd);
  if (!line) return tl::unexpected(line.error());
  return *line ? std::optional(console_line_from_json(**line)) : std::nullopt;
}

Result<std::optional<Json>> Connection::next_line(Deadline deadline, int wake_fd) {
  for (;;) {
    auto line = reader_.next();
    if (!line) return fail(ErrorKind::unreachable, lost() + line.error().message);
    if (*line) {
      auto json = parse_line(**line);
      if (!json) return fail(ErrorKind::unreachable, lost() + json.error().message);
      return std::optional<Json>(*std::move(json));
    }
    std::array<pollfd, 2> ready{{{fd_, POLLIN, 0}, {wake_fd, POLLIN, 0}}};
    const int count = ::poll(ready.data(), ready.size(), remaining_ms(deadline));
    if (count < 0 && errno != EINTR) return fail(ErrorKind::unreachable, lost() + std::strerror(errno));
    if (count == 0 || ready[1].revents != 0) return std::optional<Json>();
    if (count < 0 || ready[0].revents == 0) continue;
    std::array<char, 65536> block;
    const ssize_t got = ::recv(fd_, block.data(), block.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return fail(ErrorKind::unreachable, lost() + (got == 0 ? "end of the stream" : std::strerror(errno)));
    reader_.append({block.data(), static_cast<std::size_t>(got)});
  }
}

Result<Json> Connection::request(const ClientRequest& request, Deadline deadline) {
  const int id = next_id_++;
  if (auto sent = send(request, id); !sent) return tl::unexpected(sent.error());
  for (;;) {
    auto line = receive(deadline);
    if (!line) return tl::unexpected(line.error());
    if (!*line) return fail(ErrorKind::timed_out, "no answer to '" + request.op + "' in time");
    if (auto* answer = std::get_if<RequestAnswer>(&**line); answer != nullptr && answer->id == id)
      return std::move(answer->value);
  }
}

}  // namespace footplate
