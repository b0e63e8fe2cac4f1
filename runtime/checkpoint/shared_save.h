#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/result.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/comm/communicator.h"

namespace footplate {

/// "rank-1.safetensors"
std::string file_of_rank(int rank);

/// A checkpoint that several ranks write, a file each, into a folder that rank 0 has made. What becomes of
/// the parts rank 0 learns by gather(), or beside training from files in that folder, since the training
/// threads may be in a pause. Training thread, on every rank, and collective, except where marked. Errors of
/// what is collective: the same on all ranks; or lost.
class SharedSave {
 public:
  /// What rank 0 has planned.
  struct Plan {
    std::filesystem::path temporary;  ///< of CheckpointStore::begin; empty: there is nothing to be written
    std::filesystem::path alike;      ///< as of CheckpointStore::write_part
    std::int64_t step = 0;
  };
  /// All ranks get rank 0's. `mine`: what that is, on other ranks ignored; its error is everybody's.
  static Result<SharedSave> begin(Communicator& ranks, const Result<Plan>& mine);

  const Plan& plan() const { return plan_; }
  /// Whether every rank sees rank 0's folder.
  Result<bool> all_see_folder() const;
  /// Once write() has returned here: the files of all parts. Error (failed): what ranks couldn't write, and
  /// why.
  Result<std::vector<ManifestFile>> gather() const;

  // Any thread, not collective.

  /// Writes this rank's part, of which nothing may be left for it.
  void write(CheckpointStore& store, std::span<const TensorView> tensors, const Wrote& wrote);
  /// Another rank than 0, after write(): leaves a note in the folder of what came of it. Where there is no
  /// room for one, its part goes, and it tries on until `gives_up`, or for so long.
  void leave_note(const std::atomic<bool>& gives_up, std::chrono::milliseconds at_most) const;
  /// Of notes that haven't come.
  enum class Wait { on, in_vain, no_more };
  /// Rank 0, after write(): waits for the notes of all other ranks, and takes them away; asks `wait` again
  /// and again. What gather() would return, or the error that notes didn't come (in vain); nothing: it waits
  /// no more.
  std::optional<Result<std::vector<ManifestFile>>> collect_notes(const std::function<Wait()>& wait) const;

 private:
  SharedSave(Communicator& ranks, Plan plan) : ranks_(&ranks), plan_(std::move(plan)) {}

  Communicator* ranks_;
  int rank_ = ranks_->rank();  ///< of the world that it began in
  int world_size_ = ranks_->world_size();
  Plan plan_;
  Result<ManifestFile> written_ = {};  ///< of no bytes: nothing
};

}  // namespace footplate
