#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "protocol/result.h"
#include "runtime/checkpoint/disk.h"
#include "runtime/checkpoint/manifest.h"
#include "runtime/checkpoint/tensor.h"
#include "runtime/checkpoint/tries.h"
#include "runtime/checkpoint/write_file.h"

namespace footplate {

/// What a save made.
struct Stored {
  std::filesystem::path path;
  std::uint64_t bytes = 0;         ///< of all its files
  std::vector<std::string> notes;  ///< what couldn't be removed afterwards, and why
};

/// Which checkpoints stay after a save, besides tagged ones.
struct Retention {
  std::size_t newest =
      0;  ///< so many of the newest; 0: all. Those that were saved as best ones alone don't count
  std::size_t best = 1;  ///< so many of the newest that were the best when they were evaluated; at least 1
};

/// The checkpoints of one branch of a run: RUN/checkpoints/main. Writes them so that a crash at any
/// moment leaves each either whole or not there (docs/checkpoints.md). Where an error may pass, a file, or a
/// whole checkpoint, is written anew: what a sync that failed has left of it nobody knows. One thread of one
/// process.
class CheckpointStore {
 public:
  /// Hears of each try that failed where another one follows.
  using Tell = std::function<void(const std::string&)>;

  /// `folder` needn't exist yet. `disk` has to outlive the store.
  CheckpointStore(std::filesystem::path folder, Disk& disk, Retries retries = {}, Tell tell = {});

  const std::filesystem::path& folder() const { return folder_; }

  /// Removes what an interrupted save or removal left. Returns what it did, for the log. Only while no
  /// other process writes here.
  std::vector<std::string> remove_leftovers();

  /// Writes one checkpoint of one file: begin(), write_part(), commit(), and of a failure nothing stays.
  /// `wrote` may give it up.
  /// Errors (failed): theirs. The older checkpoints are then all there, and no half one is.
  Result<Stored> save(Manifest manifest, const std::string& file, std::span<const TensorView> tensors,
                      Retention keep, const std::filesystem::path& alike = {}, const Wrote& wrote = {});

  // The same where several processes write, each a file of its own.

  /// Makes the folder that files are written into until the checkpoint of this step and tag is committed, and
  /// returns its path; tried once. Errors: usage, where that is no tag; failed, as of write_part().
  Result<std::filesystem::path> begin(std::int64_t step, const std::string& tag);
  /// Any process, each another `file`: writes these tensors into a folder that begin() has made, and reads
  /// them back. Where the checkpoint `alike` (a path; empty: none) has the same file of the same step, that
  /// gets a second name instead of being written again. `wrote` hears of what is written. Errors (failed):
  /// the operating system's, with the folder, the space left and what to do.
  Result<ManifestFile> write_part(const std::filesystem::path& temporary, std::int64_t step,
                                  const std::string& file, std::span<const TensorView> tensors,
                                  const std::filesystem::path& alike = {}, const Wrote& wrote = {});
  /// Who began: makes it the checkpoint of its step once all files are there, `manifest.files`, and returns
  /// when it is on the device; then removes what `keep` no longer holds. `manifest.created` is filled in
  /// here; `wrote` may give up the writing of the manifest, which alone is tried again. Errors (failed): as
  /// of write_part().
  Result<Stored> commit(const std::filesystem::path& temporary, Manifest manifest, Retention keep,
                        const Wrote& wrote = {});
  /// Who began: removes what was written. Best effort: remove_leftovers() does the rest.
  void abandon(const std::filesystem::path& temporary);

  /// Gives a checkpoint here that tag, or takes its tag away (empty), by a folder beside it whose files are
  /// second names. Returns where it is now. Errors (failed): as of save(), or it can't be read.
  Result<std::filesystem::path> retag(const std::filesystem::path& path, const std::string& tag);

  /// Removes a checkpoint here. Errors (failed): the operating system's.
  Result<void> remove(const std::filesystem::path& path);

 private:
  /// What the last `attempt` came to; `undo` removes what one that failed has left.
  template <class T>
  Result<T> retried(const Wrote& wrote, const std::function<Result<T>()>& attempt,
                    const std::function<void()>& undo);
  Result<ManifestFile> write_tensors(const std::filesystem::path& temporary, std::int64_t step,
                                     const std::string& file, std::span<const TensorView> tensors,
                                     const std::filesystem::path& alike, const Wrote& wrote);
  Result<Stored> place(const std::filesystem::path& temporary, const Manifest& manifest,
                       std::uint64_t manifest_bytes, const Retention& keep);
  Result<void> make_folders();
  Result<std::uint64_t> write_manifest(const std::filesystem::path& temporary, const Manifest& manifest);
  Result<void> put_in_place(const std::filesystem::path& temporary, const std::filesystem::path& target);
  void retain(const Retention& keep, const std::filesystem::path& newest, std::vector<std::string>& notes);
  std::error_code remove_checkpoint(const std::filesystem::path& path);
  std::error_code remove_temporary(const std::filesystem::path& path);
  Error explain(const std::string& doing, const std::error_code& error);
  Error unreadable(const Error& error);

  std::filesystem::path folder_;
  Disk& disk_;
  Retries retries_;
  Tell tell_;
  std::error_code failed_with_;  ///< the attempt under way
};

}  // namespace footplate
