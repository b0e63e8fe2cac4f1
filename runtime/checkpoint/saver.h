#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/branches.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/checkpoint/disk.h"
#include "runtime/state/ports.h"

namespace footplate {

/// What main knows and a snapshot doesn't.
struct SaverOptions {
  std::filesystem::path run_directory;  ///< spelled the same on every rank
  std::string run_id;
  int start = 1;
  int rank = 0;
  int world_size = 1;
  std::string branch = "main";
  std::filesystem::path origin;  ///< checkpoint that this start goes on from; empty: none
  std::function<std::optional<BestEvaluation>()> best;  ///< that the run knows, any thread; may be empty
  std::function<std::uint64_t()> last_order;            ///< id of the last order applied; may be empty
  std::function<Json()> store;                          ///< an object for manifest.store; may be empty
  std::function<Json()> orders;                         ///< a list for manifest.orders; may be empty
  std::function<Json()> metrics;                        ///< an object for manifest.metrics; may be empty
  std::function<void(const std::string&)> warn;         ///< what couldn't be removed; may be empty
};

/// Checkpoints of replicated state: rank 0 writes all of it into rank-0.safetensors, at once; the
/// others write nothing. Every rank loads all of it. Training thread.
class CheckpointSaver final : public Saver {
 public:
  /// `disk` has to outlive the saver.
  CheckpointSaver(SaverOptions options, Disk& disk);

  /// Rank 0 at the start: removes what an interrupted save left; lines for the log.
  std::vector<std::string> remove_leftovers();

  /// Errors as of CheckpointStore::save; (failed) for state that isn't replicated. ckpt.keep comes
  /// from the snapshot's settings. Saving the same step, tag and orders twice in a row writes once.
  Result<Saved> save(const Snapshot& snapshot) override;
  Result<Json> load(const std::string& checkpoint, const StateTable& into) override;
  RunMoment moment() const override;
  Result<void> look_for(const std::string& ref, std::int64_t step) const override;
  Result<std::vector<MovedCheckpoint>> tag(const std::string& ref, std::int64_t step,
                                           const std::string& tag) override;
  Result<std::string> remove(const std::string& tag) override;
  void moved_to(int rank, int world_size) override;

 private:
  /// The newest save, so that the same isn't written twice.
  struct Last {
    std::string path;
    std::uint64_t order = 0;
    Json orders;
    std::optional<BestEvaluation> best;
    bool only_best = false;
    bool operator==(const Last&) const = default;
  };
  Result<FoundCheckpoint> find(const std::string& ref, std::int64_t step) const;
  Manifest manifest_of(const Snapshot& snapshot, const RunMoment& moment) const;

  SaverOptions options_;
  Disk& disk_;
  CheckpointStore store_;
  Last last_;
};

/// As many of `orders`, from the first on, as a manifest has room for; the others are said to `warn`.
Json within_a_manifest(Json orders, const std::function<void(const std::string&)>& warn);

}  // namespace footplate
