#include "console/host/clients/listener.h"

#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace footplate::host {
namespace {

constexpr int kBacklog = 128;

std::string reason() {
  return std::strerror(errno);
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), std::begin(address.sun_path));
  return address;
}

/// Mode 0700, ours, and really a directory: whoever could write into it could put a socket in our place.
Result<void> make_directory(const std::filesystem::path& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(ErrorKind::failed, "can't make " + directory.string() + ": " + reason());
  struct stat info {};
  if (::lstat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return fail(ErrorKind::failed, directory.string() + " is not a directory; remove it");
  if (info.st_uid != ::geteuid())
    return fail(ErrorKind::failed, directory.string() + " belongs to " + user_name(info.st_uid) +
                                       ": it has to be this user's; ask them to remove it");
  if ((info.st_mode & 0777) != 0700 && ::chmod(directory.c_str(), 0700) != 0)
    return fail(ErrorKind::failed, "can't make " + directory.string() + " private: " + reason());
  return {};
}

/// Removes a socket that nobody listens on.
Result<void> clear_stale(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode))
    return fail(ErrorKind::failed, path + " is there and is not a socket; remove it");
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_un address = address_of(path);
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
      errno == EAGAIN)
    return fail(ErrorKind::failed, "another console listens on " + path);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    return fail(ErrorKind::failed, "can't remove the stale " + path + ": " + reason());
  return {};
}

int bind_private(int fd, const std::string& path) {
  const sockaddr_un address = address_of(path);
  const mode_t before = ::umask(0177);  // the socket must never exist with a wider mode
  const int result = ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  ::umask(before);
  return result;
}

}  // namespace

std::string user_name(uid_t uid) {
  const passwd* entry = ::getpwuid(uid);
  return entry != nullptr ? entry->pw_name : "uid " + std::to_string(uid);
}

Result<std::filesystem::path> Listener::path_for(const RunIdentity& run) {
  if (!run.socket.empty()) return run.socket;
  const std::string& id = run.id;
  const bool plain =
      !id.empty() && id[0] != '.' && id.find('/') == std::string::npos && id.find('\0') == std::string::npos;
  if (!plain) return fail(ErrorKind::failed, "a run's id has to be a plain file name, got '" + id + "'");
  return "/tmp/footplate-" + std::to_string(::geteuid()) + "/" + id + ".sock";
}

Result<Listener> Listener::open(std::filesystem::path path) {
  constexpr std::size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
  if (path.string().size() > kMaxPath)
    return fail(ErrorKind::failed, "socket path of " + std::to_string(path.string().size()) +
                                       " bytes; at most " + std::to_string(kMaxPath) +
                                       " are possible: " + path.string());
  if (auto made = make_directory(path.parent_path()); !made) return tl::unexpected(made.error());
  if (auto cleared = clear_stale(path); !cleared) return tl::unexpected(cleared.error());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  struct stat info {};
  if (!fd || bind_private(fd.get(), path) != 0 || ::lstat(path.c_str(), &info) != 0 ||
      ::listen(fd.get(), kBacklog) != 0)
    return fail(ErrorKind::failed, "can't listen on " + path.string() + ": " + reason());
  return Listener(std::move(fd), std::move(path), info.st_dev, info.st_ino);
}

Listener::~Listener() {
  if (fd_ && in_place()) ::unlink(path_.c_str());
}

bool Listener::in_place() const {
  struct stat info {};
  return ::lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_;
}

Accepted Listener::accept() const {
  Accepted accepted;
  Fd fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (!fd || ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return accepted;
  if (peer.uid != ::geteuid() && peer.uid != 0) {
    const std::string line = to_line(
        {{"type", "error"},
         {"id", nullptr},
         {"error", to_json(Error{ErrorKind::refused, "this run belongs to " + user_name(::geteuid())})}});
    [[maybe_unused]] const ssize_t sent =
        ::send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return accepted;
  }
  accepted.uid = peer.uid;
  accepted.user = user_name(peer.uid);
  accepted.fd = std::move(fd);
  return accepted;
}

}  // namespace footplate::host
