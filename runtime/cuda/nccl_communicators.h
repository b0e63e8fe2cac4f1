#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/settings.h"
#include "runtime/comm/ledger.h"
#include "runtime/cuda/bounded_thread.h"
#include "runtime/cuda/nccl_library.h"

namespace footplate {

/// What communicators are made with, as a value that other ranks can be given as bytes. NCCL's pointers to
/// names are set where it is used.
struct CommunicatorConfig : nccl_abi::Config {
  static constexpr std::size_t kLongestName = 63;
  std::array<char, kLongestName + 1> network{};  ///< nccl.net; empty: NCCL's choice
};

/// From nccl.*: never blocking, so that making a communicator can be given up. What isn't set is NCCL's
/// choice.
CommunicatorConfig communicator_config(const Settings& settings);

/// The NCCL communicators of one rank, of one generation at a time: made together, given up together. Needs
/// no device itself; what is enqueued goes to the caller's streams.
///
/// One thread connects, launches, aborts and finishes; error() is for any thread. Calls of NCCL that may
/// never return (it has no time limit inside) run on a helper thread with a bound. Where one is passed
/// nothing can be done here any more: the helper is left behind, every later call fails, and the rank has to
/// end.
class NcclCommunicators {
 public:
  struct Bounds {
    std::chrono::milliseconds connect{300'000};  ///< comm.init_timeout_s
    std::chrono::milliseconds abort{30'000};
    std::chrono::milliseconds launch{300'000};  ///< connections of an algorithm are made at its first use
  };
  /// One communicator: its ranks have got `id` from one of them (new_id), by MPI.
  struct Group {
    std::string name;  ///< "data parallel", for messages
    nccl_abi::UniqueId id;
    int rank = 0;
    int ranks = 1;
  };
  /// An operation of a group's ranks, in device memory.
  struct Operation {
    Collective kind = Collective::all_reduce;  ///< or reduce_scatter, all_gather, or sendrecv
    std::size_t group = 0;                     ///< which of the groups given to connect()
    const void* send = nullptr;
    void* receive = nullptr;
    std::size_t elements = 0;  ///< of an all_reduce; else of one rank's block
    nccl_abi::DataTypeNumber type = nccl_abi::kFloat32;
    nccl_abi::OperatorNumber op = nccl_abi::kSum;
    int to = 0, from = 0;  ///< of a sendrecv: the group's ranks that `send` goes to and `receive` comes from
    /// How an all_reduce is done, where the library can be told so; null: NCCL's choice. Needed during the
    /// call alone.
    const nccl_abi::CollectiveConfig* config = nullptr;
  };

  /// `given_up`: asked while something is waited for; true ends that with an error (lost). Any thread.
  /// `enter_thread`: called on a thread before it calls NCCL, which works on the thread's device.
  NcclCommunicators(const NcclLibrary& library, Bounds bounds, std::function<bool()> given_up = {},
                    std::function<void()> enter_thread = {});
  /// Aborts what is still connected, within the bound.
  ~NcclCommunicators();
  NcclCommunicators(const NcclCommunicators&) = delete;
  NcclCommunicators& operator=(const NcclCommunicators&) = delete;

  /// A new id, on the one rank that gives it to the others. Errors: failed, with NCCL's words.
  Result<nccl_abi::UniqueId> new_id() const;

  /// Makes a communicator for each group, all together; every rank of the groups calls it. Not while
  /// connected. Errors: timed_out, after Bounds::connect, lost, failed; what was made so far is aborted.
  Result<void> connect(const std::vector<Group>& groups, const CommunicatorConfig& config);

  /// Ends what is under way on every communicator and frees them, in one group: one after the other they
  /// would wait for each other's streams. Graphs that hold them have to be destroyed before: NCCL waits for
  /// that without a limit. Nothing connected: does nothing. Errors: timed_out, after Bounds::abort; end the
  /// rank.
  Result<void> abort();

  /// abort(), then connect() with new ids.
  Result<void> rebuild(const std::vector<Group>& groups, const CommunicatorConfig& config);

  /// The orderly end, of all ranks, with nothing under way. Errors as of abort(), which it falls back on.
  Result<void> finish();

  /// Enqueues all of them on `stream` as one group: NCCL fuses what is alike. Returns once they are enqueued,
  /// not done. Errors: failed, timed_out; then abort().
  Result<void> enqueue(std::span<const Operation> operations, nccl_abi::Stream stream);

  /// The first error that NCCL has told of this generation; asks it. It doesn't see a peer that hangs: that
  /// is the watchdog's.
  std::optional<Error> error();

  bool connected() const { return !comms_.empty(); }
  std::uint32_t generation() const { return generation_; }  ///< one more with each connect()
  /// Whether a call has never come back.
  bool stuck() const { return helper_.stuck(); }

 private:
  using Comm = NcclLibrary::Comm;
  using Status = nccl_abi::Status;
  struct Call;

  Status enqueue(const Operation& one, nccl_abi::Stream stream) const;
  Result<Status> bounded(const char* what, std::chrono::milliseconds bound, std::function<Status()> call);
  Result<void> await(const std::vector<Comm>& comms, const char* what, SteadyClock::time_point until);
  Error nccl_error(const std::string& what, Status status, Comm comm) const;
  Result<void> end(const char* what, bool in_order);

  const NcclLibrary library_;
  const Bounds bounds_;
  const std::function<bool()> given_up_;
  const std::function<void()> enter_thread_;
  std::vector<std::string> names_;  ///< of comms_
  std::vector<Comm> comms_;
  std::uint32_t generation_ = 0;
  std::optional<Error> error_;
  BoundedThread helper_;
};

}  // namespace footplate
