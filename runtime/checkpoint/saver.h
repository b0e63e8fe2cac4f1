#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/network/memory.h"
#include "runtime/base/clock.h"
#include "runtime/checkpoint/background_thread.h"
#include "runtime/checkpoint/branches.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/checkpoint/disk.h"
#include "runtime/checkpoint/shared_save.h"
#include "runtime/checkpoint/snapshot_buffer.h"
#include "runtime/checkpoint/state_part.h"
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
  std::function<void(const std::string&)> warn;  ///< what couldn't be removed; any thread; may be empty
  std::function<void(const std::string&)> log;   ///< what is tried again; any thread; may be empty
  std::function<void()> before_commit;           ///< any thread; may be empty, and may not return
  Retries retries = {};                          ///< of writing
  /// Bytes that the system has for a copy of the state; nothing where that isn't known.
  std::function<std::optional<std::int64_t>()> memory_left = [] { return footplate::memory_left(); };
  std::function<void(double share)> wrote;  ///< of the part under way, 0 to 1; any thread; may be empty
  Communicator* ranks = nullptr;            ///< null: rank 0 writes alone
  std::chrono::milliseconds note_takes = std::chrono::seconds(60);  ///< at most; of parts beside training
};

/// Checkpoints. Rank 0 writes a small one alone; of a large one several ranks write a part each,
/// rank-R.safetensors, and of sharded state all do; rank 0 commits it. Every rank reads all of it, and takes
/// what is its own. What begin() has begun, a thread of this object's writes from a copy; whatever else is
/// done with checkpoints waits for it. Training thread.
class CheckpointSaver final : public Saver {
 public:
  /// `disk` has to outlive the saver.
  CheckpointSaver(SaverOptions options, Disk& disk);
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;
  ~CheckpointSaver() override;

  /// Rank 0 at the start: removes what an interrupted save left; lines for the log.
  std::vector<std::string> remove_leftovers();

  /// Errors as of CheckpointStore::save; (failed) for state that is each rank's own. ckpt.keep comes
  /// from the snapshot's settings. Saving the same step, tag and orders twice in a row writes once.
  Result<Saved> save(const Snapshot& snapshot) override;
  Result<BegunSave> begin(const Snapshot& snapshot, std::function<void(const Result<Saved>&)> done) override;
  int parts(const StateTable& state, const Settings& settings) const override;
  bool awaits_parts() const override { return has_parts_; }
  void finish_part() override { writes_part_.wait(true); }
  void expect_parts() override;
  bool give_up() override;
  void finish() override { writer_.wait(); }
  bool is_writing() const override { return writer_.is_busy(); }
  void make_room(const StateTable& state, const Settings& settings) override;
  void give_room_back() override;
  std::string newest() const override;
  Result<Json> load(const std::string& checkpoint, const StateTable& into) override;
  RunMoment moment() const override;
  Result<void> look_for(const std::string& ref, std::int64_t step) const override;
  Result<std::vector<MovedCheckpoint>> tag(const std::string& ref, std::int64_t step,
                                           const std::string& tag) override;
  Result<std::string> remove(const std::string& tag) override;
  void moved_to(int rank, int world_size) override;
  void tidy() override;

 private:
  using Done = std::function<void(const Result<Saved>&)>;
  /// The newest save, so that the same isn't written twice.
  struct Last {
    std::string path;
    std::uint64_t order = 0;
    Json orders;
    std::optional<BestEvaluation> best;
    bool only_best = false;
    bool operator==(const Last&) const = default;
  };
  /// One that is to be written.
  struct Planned {
    Manifest manifest;
    Retention keep;
    std::filesystem::path alike;
    Last last;
  };
  /// One that several ranks write, until it is committed.
  struct Shared {
    SharedSave save;
    std::optional<Planned> planned;  ///< rank 0's
  };
  std::string path_of(const Snapshot& snapshot) const;
  /// Nothing: it is there already.
  std::optional<Planned> plan(const Snapshot& snapshot);
  /// Views of a copy in copy_. Errors (failed): there is no memory for it; the device's.
  Result<std::vector<TensorView>> copy(const StatePart& part);
  Wrote wrote(std::span<const TensorView> tensors) const;
  Result<Saved> write(Planned planned, std::span<const TensorView> tensors);
  Saved saved(Planned planned, const Stored& stored);

  void tell_waiting(std::int64_t step, const std::string& why) const;

  // Collective, for Snapshot::parts of more than 1. `done`: empty where training waits. Errors: failed, the
  // same on all ranks; lost.
  Result<BegunSave> save_parts(const Snapshot& snapshot, const Done& done);
  Result<BegunSave> save_parts(const Snapshot& snapshot, const Shared& shared, const Done& done);
  Result<BegunSave> save_alone(const Snapshot& snapshot, const Shared& shared, const Done& done);
  /// This rank's part is written beside training. Error: any rank's can't be.
  Result<void> begin_part(const StatePart& part, const Shared& shared, const Done& done);
  /// Rank 0: the bytes of the whole checkpoint.
  Result<std::int64_t> save_part(const StatePart& part, const Shared& shared);
  /// Rank 0, any thread.
  Result<Saved> commit(const Shared& shared, const Result<std::vector<ManifestFile>>& files);

  Result<FoundCheckpoint> find(const std::string& ref, std::int64_t step) const;
  Manifest manifest_of(const Snapshot& snapshot, const RunMoment& moment) const;

  SaverOptions options_;
  Disk& disk_;
  // The writer's, while there is something under way.
  CheckpointStore store_;
  Last last_;
  SnapshotBuffer copy_;
  bool has_parts_ = false;  ///< what was begun last is of parts
  std::atomic<bool> writes_part_{false}, gives_up_{false};
  std::atomic<SteadyClock::time_point> parts_due_{SteadyClock::time_point::max()};  ///< rank 0's: their notes
  bool gave_up_ = false;     ///< the writer's: parts came to nothing
  bool alone_ = false;       ///< other ranks don't see rank 0's folder
  bool untidy_ = false;      ///< what was given up may have left files
  BackgroundThread writer_;  // last: it is waited for before the others go
};

/// As many of `orders`, from the first on, as a manifest has room for; the others are said to `warn`.
Json within_a_manifest(Json orders, const std::function<void(const std::string&)>& warn);

}  // namespace footplate
