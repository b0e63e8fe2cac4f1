#include "console/client/link/run_connection.h"

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

#include "console/client/runs/run_record.h"

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

Result<void> check_hello(const Json& hello, const std::string& path) {
  if (text_of(hello, "product") != "footplate")
    return fail(ErrorKind::unreachable, path + " is not a footplate console");
  if (integer_of(hello, "protocol", 0) != kProtocolVersion)
    return fail(ErrorKind::unreachable, "the run speaks protocol " + hello.value("protocol", Json()).dump() +
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
  Connection connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ::setsockopt(connection.fd_, SOL_SOCKET, SO_SNDTIMEO, &kSendLimit, sizeof(kSendLimit));
  if (::connect(connection.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
    return fail(ErrorKind::unreachable, "can't connect to " + socket_path + ": " + std::strerror(errno));
  if (!peer_is_trusted(connection.fd_))
    return fail(ErrorKind::unreachable, socket_path + " belongs to another user; not speaking to it");
  auto hello = connection.receive(deadline);
  if (!hello) return tl::unexpected(hello.error());
  if (!*hello) return fail(ErrorKind::timed_out, "the console at " + socket_path + " said nothing in time");
  if (auto good = check_hello(**hello, socket_path); !good) return tl::unexpected(good.error());
  connection.hello_ = **std::move(hello);
  return connection;
}

Result<void> Connection::send(const Json& request) {
  const std::string line = to_line(request);
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

Result<std::optional<Json>> Connection::receive(Deadline deadline, int wake_fd) {
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

Result<Json> Connection::request(Json request, Deadline deadline) {
  const int id = next_id_++;
  request["id"] = id;
  if (auto sent = send(request); !sent) return tl::unexpected(sent.error());
  for (;;) {
    auto line = receive(deadline);
    if (!line) return tl::unexpected(line.error());
    if (!*line) return fail(ErrorKind::timed_out, "no answer to '" + text_of(request, "op") + "' in time");
    const Json& message = **line;
    if (!message.is_object() || message.value("id", Json()) != id) continue;
    if (text_of(message, "type") == "result") return message.value("value", Json());
    if (text_of(message, "type") == "error") return tl::unexpected(error_of(message));
  }
}

Error error_of(const Json& answer) {
  const Json& error = answer.contains("error") ? answer["error"] : answer;
  const std::string kind = text_of(error, "kind");
  Error result{ErrorKind::failed, text_of(error, "message")};
  if (kind == "usage") result.kind = ErrorKind::usage;
  if (kind == "script") result.kind = ErrorKind::script;
  if (kind == "unreachable") result.kind = ErrorKind::unreachable;
  if (kind == "refused") result.kind = ErrorKind::refused;
  if (kind == "timed_out") result.kind = ErrorKind::timed_out;
  return result;
}

}  // namespace footplate
