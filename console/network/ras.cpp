#include "console/network/ras.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "protocol/fd.h"

namespace footplate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBytes = 1 << 20;
constexpr std::string_view kHello = "CLIENT PROTOCOL 2\n";
constexpr std::string_view kAnswersHello = "SERVER PROTOCOL ";
/// How long the process that is asked waits for the others, and how much longer it is waited for.
constexpr std::chrono::seconds kSlack{2};

/// A connection, and until when it is waited for.
class RasConnection {
 public:
  RasConnection(Fd socket, std::string address, Clock::time_point until)
      : socket_(std::move(socket)), address_(std::move(address)), until_(until) {}

  /// Sends `line` and reads one. Errors: as ask_nccl_ras.
  Result<std::string> ask(std::string_view line) {
    if (auto sent = send(line); !sent) return tl::unexpected(sent.error());
    for (std::string answer;;) {
      if (const auto end = answer.find('\n'); end != std::string::npos) return answer.substr(0, end);
      auto more = receive();
      if (!more) return tl::unexpected(more.error());
      if (more->empty()) return not_nccl();
      answer += *more;
    }
  }

  /// Sends `line` and reads what follows to its end.
  Result<std::string> ask_for_all(std::string_view line) {
    if (auto sent = send(line); !sent) return tl::unexpected(sent.error());
    for (std::string answer;;) {
      auto more = receive();
      if (!more) return tl::unexpected(more.error());
      if (more->empty()) return answer;
      answer += *more;
      if (answer.size() > kMostBytes) return answer.substr(0, kMostBytes) + "\n… (cut here)";
    }
  }

  tl::unexpected<Error> not_nccl() const {
    return fail(ErrorKind::failed, "what listens at " + address_ + " doesn't answer as NCCL's RAS does");
  }

 private:
  Result<void> await(short event) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until_ - Clock::now()).count();
    pollfd ready{socket_.get(), event, 0};
    const int found = left > 0 ? ::poll(&ready, 1, static_cast<int>(left)) : 0;
    if (found > 0 || (found < 0 && errno == EINTR)) return {};
    return fail(ErrorKind::timed_out, "NCCL's RAS at " + address_ + " hasn't answered in time");
  }

  Result<void> send(std::string_view text) {
    while (!text.empty()) {
      if (auto ready = await(POLLOUT); !ready) return ready;
      const auto sent = ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
      if (sent < 0 && errno != EAGAIN && errno != EINTR) return not_nccl();
    }
    return {};
  }

  /// Empty: the other side has closed.
  Result<std::string> receive() {
    std::array<char, 4096> piece{};
    for (;;) {
      if (auto ready = await(POLLIN); !ready) return tl::unexpected(ready.error());
      const auto got = ::recv(socket_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
      if (got >= 0) return std::string(piece.data(), static_cast<std::size_t>(got));
      if (errno != EAGAIN && errno != EINTR) return not_nccl();
    }
  }

  Fd socket_;
  std::string address_;
  Clock::time_point until_;
};

Fd connected_to(const addrinfo& place, Clock::time_point until) {
  Fd socket(::socket(place.ai_family, place.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, place.ai_protocol));
  if (!socket) return {};
  if (::connect(socket.get(), place.ai_addr, place.ai_addrlen) == 0) return socket;
  if (errno != EINPROGRESS) return {};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  pollfd ready{socket.get(), POLLOUT, 0};
  if (::poll(&ready, 1, static_cast<int>(std::max<long>(0, left))) != 1) return {};
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) return {};
  return socket;
}

Fd connected(const std::string& address, Clock::time_point until) {
  const auto colon = address.rfind(':');
  if (colon == std::string::npos) return {};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints, &found) != 0)
    return {};
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  for (const addrinfo* place = all.get(); place != nullptr; place = place->ai_next)
    if (Fd socket = connected_to(*place, until)) return socket;
  return {};
}

}  // namespace

Result<std::string> ask_nccl_ras(const std::string& address, bool verbose, std::chrono::seconds at_most) {
  const auto until = Clock::now() + at_most + kSlack;
  Fd socket = connected(address, until);
  if (!socket)
    return fail(ErrorKind::failed,
                "nobody answers at " + address +
                    ", where NCCL's RAS would: this run has no NCCL communicator, or NCCL_RAS_ENABLE=0");
  RasConnection ras(std::move(socket), address, until);
  const auto hello = ras.ask(kHello);
  if (!hello) return tl::unexpected(hello.error());
  if (!hello->starts_with(kAnswersHello)) return ras.not_nccl();
  const auto bound = ras.ask("TIMEOUT " + std::to_string(at_most.count()) + "\n");
  if (!bound) return tl::unexpected(bound.error());
  return ras.ask_for_all(verbose ? "VERBOSE STATUS\n" : "STATUS\n");
}

}  // namespace footplate
