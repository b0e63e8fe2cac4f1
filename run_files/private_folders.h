#pragma once

#include <filesystem>
#include <string>

#include "protocol/result.h"

namespace footplate {

/// The places outside the run directory that a run uses, all private to the user and named after its id:
/// the console's socket, a folder for temporary files (Open MPI's session, doorbells) and one for shared
/// memory. Paths are short: a socket's is at most 108 bytes. Each host of a run has its own: `footplate run`
/// makes them where it runs, ranks do where they find none.
struct PrivateFolders {
  std::filesystem::path base;       ///< /tmp/footplate-UID
  std::filesystem::path socket;     ///< /tmp/footplate-UID/ID.sock
  std::filesystem::path temporary;  ///< /tmp/footplate-UID/ID.d
  std::filesystem::path
      shared_memory;  ///< /dev/shm/footplate-UID-ID, or inside `temporary` where there is no /dev/shm

  static PrivateFolders of(const std::string& id);
  /// The run's id, of the path of a `temporary`; empty: it is none.
  static std::string id_of(const std::filesystem::path& temporary);

  /// Makes them, mode 0700, and takes a lock on `temporary` that lasts until the descriptor and all its
  /// copies are closed: the sign that the run still needs them. Returns the descriptor. Error: another user
  /// owns the base.
  Result<int> create() const;

  /// Whether `footplate run` has made them on this host, and removes them.
  bool are_launchers() const;
  /// As create(), for a rank on a host of which no `footplate run` knows: its ranks share the lock.
  Result<int> share() const;

  /// Removes what is in them, between two starts of one run.
  void clear() const;

  /// Removes them, whatever is inside.
  void remove() const;

 private:
  Result<int> make(int lock_kind) const;
};

/// Removes what runs left behind whose supervisor was killed together with all that could clear up after it:
/// folders of this user on which nobody holds the lock.
void sweep_abandoned_folders();

/// Starts a process that removes the folders once no process of this host has the lock any more, however
/// those end; and ends Open MPI's daemon, this process's parent, where mark_orphaned() was called. Of a
/// daemon that was killed it removes the folder. Call before there are threads. False: it couldn't be
/// started.
bool remove_when_abandoned(const PrivateFolders& folders);

/// The host of mpirun is lost, or another start has the run: nobody will end its daemon on this one.
void mark_orphaned(const PrivateFolders& folders);

}  // namespace footplate
