#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>

#include "protocol/fd.h"
#include "protocol/messages/link_messages.h"

namespace footplate::host {

/// A client that was let in, and who it is by the kernel's word.
struct Accepted {
  Fd fd;  ///< none: nobody there, or turned away
  uid_t uid = 0;
  std::string user;
};

/// The console's socket: mode 0600 in a directory of mode 0700 that belongs to this user.
class Listener {
 public:
  /// `run` is hello's: its `socket`, else /tmp/footplate-UID/ID.sock. Errors: what is wrong with the path.
  static Result<std::filesystem::path> path_for(const RunIdentity& run);

  /// Makes the directory and the socket; replaces a socket that nobody listens on. Errors: the directory
  /// is someone else's, the path is longer than 107 bytes, another console is listening.
  static Result<Listener> open(std::filesystem::path path);

  Listener(Listener&&) = default;
  Listener& operator=(Listener&&) = default;
  ~Listener();

  int fd() const { return fd_.get(); }
  const std::filesystem::path& path() const { return path_; }

  /// Only this user and root are let in; others get a line that says so.
  Accepted accept() const;

  /// Whether the socket is still the file that was made: somebody may have cleared /tmp.
  bool in_place() const;

 private:
  Listener(Fd fd, std::filesystem::path path, dev_t device, ino_t inode)
      : fd_(std::move(fd)), path_(std::move(path)), device_(device), inode_(inode) {}

  Fd fd_;
  std::filesystem::path path_;
  dev_t device_;
  ino_t inode_;
};

/// Name of a user, or their number.
std::string user_name(uid_t uid);

}  // namespace footplate::host
