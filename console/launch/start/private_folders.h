#pragma once

#include <filesystem>
#include <string>

#include "protocol/result.h"

namespace footplate {

/// The places outside the run directory that a run uses, all private to the user and named after its id:
/// the console's socket, a folder for temporary files (Open MPI's session, doorbells) and one for shared
/// memory. Paths are short: a socket's is at most 108 bytes.
struct PrivateFolders {
  std::filesystem::path base;       ///< /tmp/footplate-UID
  std::filesystem::path socket;     ///< /tmp/footplate-UID/ID.sock
  std::filesystem::path temporary;  ///< /tmp/footplate-UID/ID.d
  std::filesystem::path
      shared_memory;  ///< /dev/shm/footplate-UID-ID, or inside `temporary` where there is no /dev/shm

  static PrivateFolders of(const std::string& id);

  /// Makes them, mode 0700, and takes a lock on `temporary` that lasts until the descriptor and all its
  /// copies are closed: the sign that the run still needs them. Returns the descriptor. Error: another user
  /// owns the base.
  Result<int> create() const;

  /// Removes what is in them, between two starts of one run.
  void clear() const;

  /// Removes them, whatever is inside.
  void remove() const;
};

/// Removes what runs left behind whose supervisor was killed together with all that could clear up after it:
/// folders of this user on which nobody holds the lock.
void sweep_abandoned_folders();

}  // namespace footplate
