#pragma once

#include <filesystem>

#include "protocol/result.h"
#include "run_files/private_folders.h"

namespace footplate {

/// The run's private folders on this rank's host. `footplate run` has made those on its own host; on another
/// one its ranks make them, and the last process of the run there leaves nothing behind, however it ends.
class HostFolders {
 public:
  /// Of the variable that `footplate run` hands its ranks; without it, a rank has none. Call before there are
  /// threads, and before MPI, which keeps its shared memory there. Errors: PrivateFolders::share()'s.
  static Result<HostFolders> open();

  /// Doorbells and the step file; empty: there is none.
  const std::filesystem::path& folder() const { return folders_.temporary; }
  /// Whether `footplate run` is on another host, which doesn't see this one's folders.
  bool are_remote() const { return lock_ >= 0; }
  /// The host of `footplate run` is lost, or another one has the run: mpirun's daemon here ends with the
  /// ranks. Any thread.
  void orphan() const {
    if (are_remote()) mark_orphaned(folders_);
  }
  /// Of the run; empty without folders.
  std::string run_id() const { return PrivateFolders::id_of(folders_.temporary); }

 private:
  PrivateFolders folders_;
  int lock_ = -1;  ///< of a remote one; kept until the process ends
};

/// Error: `run_directory` isn't that of the run that has started this rank: hosts don't share it. A network
/// file system may be seconds late.
Result<void> check_shared(const std::filesystem::path& run_directory, const HostFolders& folders);

}  // namespace footplate
