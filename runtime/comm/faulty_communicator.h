#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/base/fault.h"
#include "runtime/base/progress.h"
#include "runtime/comm/communicator.h"

namespace footplate {

/// What FOOTPLATE_FAULT asks of a rank's collectives (reduce_late, odd_reduce, eval_absent), around those of
/// another communicator. All else goes through as it is. The launching thread.
class FaultyCommunicator final : public Communicator {
 public:
  /// `inner` and `progress` outlive it. `rank`: at the start, which the faults name.
  FaultyCommunicator(Communicator& inner, Progress& progress, int rank);

  /// Before the collectives of a step, also where the step is done again.
  void begin_step(std::int64_t step);

  int rank() const override { return inner_.rank(); }
  int world_size() const override { return inner_.world_size(); }
  std::vector<int> host_numbers() const override { return inner_.host_numbers(); }
  void set_chunk_elements(std::int64_t elements) override { inner_.set_chunk_elements(elements); }
  void set_checks(bool on) override { inner_.set_checks(on); }
  void set_two_levels(bool on) override { inner_.set_two_levels(on); }
  std::unique_ptr<Work> all_reduce(Buffer buffer, ReduceOp op, const char* name) override;
  std::unique_ptr<Work> broadcast(Buffer buffer, int root, const char* name) override {
    return inner_.broadcast(buffer, root, name);
  }
  std::unique_ptr<Work> all_gather(Buffer send, Buffer receive, const char* name) override {
    return inner_.all_gather(send, receive, name);
  }
  std::unique_ptr<Work> barrier(const char* name) override { return inner_.barrier(name); }
  std::unique_ptr<Work> reduce_scatter(Buffer buffer, ReduceOp op, const char* name) override;
  std::unique_ptr<Work> all_gather_shares(Buffer buffer, const char* name) override {
    return inner_.all_gather_shares(buffer, name);
  }
  std::unique_ptr<Work> pass_shares(Buffer buffer, int distance, const char* name) override {
    return inner_.pass_shares(buffer, distance, name);
  }
  Result<void> rejoin(std::uint32_t generation, std::uint64_t sequence) override {
    return inner_.rejoin(generation, sequence);
  }

 private:
  void before(std::string_view what, std::int64_t elements);
  void before_gradients(std::int64_t elements);

  Communicator& inner_;
  Progress& progress_;
  const std::optional<Fault> late_, odd_, absent_;
  std::int64_t step_ = 0;
  bool first_ = false;      ///< no gradients of the step have been reduced yet
  std::vector<float> sum_;  ///< of the odd reduction
};

}  // namespace footplate
