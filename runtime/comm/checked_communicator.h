#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "runtime/comm/communicator.h"
#include "runtime/comm/ledger.h"

namespace footplate {

/// debug.collectives: around another communicator, whose operations go through as they are while it is off.
/// While it is on, the ranks tell each other what they are about to call before each operation, and compare a
/// hash of what it gave behind it. Where they differ, the operation fails on all ranks, with who called or
/// got what: what they had called isn't launched, where it might hang. Each operation is over when its call
/// returns. The launching thread.
class CheckedCommunicator final : public Communicator {
 public:
  /// Of what a buffer holds.
  using Hash = std::function<std::uint64_t(const Buffer&)>;

  /// All outlive it. By `host` the ranks speak: its buffers are in the host's memory. It may be `inner`.
  CheckedCommunicator(Communicator& inner, Communicator& host, const Progress& progress, Hash hash)
      : inner_(inner), host_(host), progress_(progress), hash_(std::move(hash)) {}

  /// All ranks change it between the same two operations.
  void set_checks(bool on) override { on_ = on; }

  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  std::vector<int> host_numbers() const override { return inner_.host_numbers(); }
  void set_chunk_elements(std::int64_t elements) override { inner_.set_chunk_elements(elements); }
  void set_two_levels(bool on) override { inner_.set_two_levels(on); }
  std::unique_ptr<Work> all_reduce(Buffer buffer, ReduceOp op, const char* name) override;
  std::unique_ptr<Work> broadcast(Buffer buffer, int root, const char* name) override;
  std::unique_ptr<Work> all_gather(Buffer send, Buffer receive, const char* name) override;
  std::unique_ptr<Work> barrier(const char* name) override;
  std::unique_ptr<Work> reduce_scatter(Buffer buffer, ReduceOp op, const char* name) override;
  std::unique_ptr<Work> all_gather_shares(Buffer buffer, const char* name) override;
  std::unique_ptr<Work> pass_shares(Buffer buffer, int distance, const char* name) override;
  Result<void> rejoin(std::uint32_t generation, std::uint64_t sequence) override {
    return inner_.rejoin(generation, sequence);
  }

 private:
  using Launch = std::function<std::unique_ptr<Work>()>;
  std::unique_ptr<Work> checked(LedgerEntry call, const Buffer& result, const Launch& launch);
  Result<void> run(const LedgerEntry& call, const Buffer& result, const Launch& launch);
  Result<void> same_call(const LedgerEntry& call);
  Result<void> same_result(const LedgerEntry& call, const Buffer& result);

  Communicator& inner_;
  Communicator& host_;
  const Progress& progress_;
  const Hash hash_;
  bool on_ = false;
};

}  // namespace footplate
