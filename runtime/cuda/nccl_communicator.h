#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "protocol/nccl/tuning_rules.h"
#include "runtime/comm/chunks.h"
#include "runtime/comm/communicator.h"
#include "runtime/comm/launch_queue.h"
#include "runtime/cuda/nccl_communicators.h"
#include "runtime/cuda/nccl_stream.h"

namespace footplate {

/// Reductions over NCCL, and shares of buffers, in the memory that NCCL works on; everything else goes to the
/// communicator of the hosts, metadata too. Its operations run among that one's, on its communication thread:
/// one order, one ledger, one watchdog. An operation is enqueued piece by piece, and waited for on that
/// thread.
///
/// What NCCL tells of as an error ends the operation, and the ranks find together anew: NCCL's communicators
/// can't be mended, only aborted and made again, by all ranks. Where that doesn't help a few times in a row,
/// the error is the run's (failed).
class NcclCommunicator final : public Communicator {
 public:
  struct Parts {
    const NcclLibrary& library;
    NcclStream& stream;
    Communicator& host;  ///< tells rank and world, and carries ids
    LaunchQueue& queue;  ///< that one's
    NcclCommunicators::Bounds bounds;
    std::function<void()> enter_thread = {};  ///< ComputeDevice::enter_thread, where there is a device
    /// How an all-reduce of so many bytes has to be done; nothing: NCCL's choice. Communication thread.
    std::function<std::optional<TuningRule>(std::size_t bytes)> rule_for = {};
    std::function<void()> find_together;  ///< has all ranks make the world anew (World). Any thread
  };
  /// How often in a row an operation may fail before the run ends.
  static constexpr int kMostFailures = 3;

  /// Everything in `parts` outlives it. Nothing is connected yet.
  NcclCommunicator(Parts parts, const CommunicatorConfig& config);
  ~NcclCommunicator() override;

  int rank() const override { return parts_.host.rank(); }
  int world_size() const override { return parts_.host.world_size(); }
  void set_chunk_elements(std::int64_t elements) override { chunk_elements_ = elements; }
  /// How many pieces of an operation NCCL gets as one group, which it launches as one where they are alike.
  /// Launching thread, the same on all ranks.
  void set_pieces_together(std::int64_t pieces) { pieces_together_ = static_cast<std::size_t>(pieces); }
  std::unique_ptr<Work> all_reduce(Buffer buffer, ReduceOp op, const char* name) override;
  std::unique_ptr<Work> broadcast(Buffer buffer, int root, const char* name) override {
    return parts_.host.broadcast(buffer, root, name);
  }
  std::unique_ptr<Work> all_gather(Buffer send, Buffer receive, const char* name) override {
    return parts_.host.all_gather(send, receive, name);
  }
  std::unique_ptr<Work> barrier(const char* name) override { return parts_.host.barrier(name); }
  std::unique_ptr<Work> reduce_scatter(Buffer buffer, ReduceOp op, const char* name) override;
  std::unique_ptr<Work> all_gather_shares(Buffer buffer, const char* name) override;
  std::unique_ptr<Work> pass_shares(Buffer buffer, int distance, const char* name) override;

  /// After the same of the host's: aborts what there was and connects the ranks that are there now, with the
  /// configuration that was renewed last on any of them. Errors, the same on all ranks: lost, timed_out,
  /// failed.
  Result<void> rejoin(std::uint32_t generation, std::uint64_t sequence) override;

  // Launching thread, every rank at once, with nothing under way.

  /// The first time; a rank that joins later comes in by rejoin(). Errors as of that.
  Result<void> connect();

  /// New communicators with `config`, tried with a small reduction. Seconds that it took. Errors, the same on
  /// all ranks: refused, with the reason, and those of before are made again; lost, and the next rejoin()
  /// makes some; failed: there are none any more, and every later operation says so.
  Result<double> renew(const CommunicatorConfig& config);

  /// The orderly end, of all ranks. False: an operation hangs; nothing of this may be freed.
  bool finish();

 private:
  struct Invitation;
  Result<void> meet(int root);
  Result<void> enter(const Invitation& invitation);
  Result<void> probe();
  struct Launched;
  std::unique_ptr<Work> launch(const Launched& it);
  Result<void> run(const Launched& it);
  Result<void> enqueue(const Launched& it);
  Result<void> enqueue_pieces(const Launched& it);
  Result<void> enqueue_stripes(const Launched& it);
  NcclCommunicators::Operation operation_on(const Launched& it, std::int64_t stripe,
                                            std::int64_t block) const;
  Result<void> drain(std::optional<SteadyClock::time_point> until);
  Error give_up(Error error, const Launched& it);

  const Parts parts_;
  NcclCommunicators communicators_;
  CommunicatorConfig config_;   ///< what they are made with
  std::int64_t renewals_ = -1;  ///< how often config_ was agreed on; -1: not a rank yet
  std::int64_t chunk_elements_ = kDefaultChunk;
  std::size_t pieces_together_ = 1;
  int failures_ = 0;             ///< since a step went well; communication thread
  std::int64_t failed_at_ = 0;   ///< the step of the last one; communication thread
  std::optional<Error> absent_;  ///< why there are no communicators; communication thread
};

}  // namespace footplate
