#include <fmt/format.h>

#include <cstring>
#include <random>

#include "runtime/comm/chunks.h"
#include "runtime/comm/launch_queue.h"
#include "runtime/comm/shares.h"
#include "runtime/comm/sim/sim_state.h"

namespace footplate {
namespace {

class SimCommunicator final : public Communicator {
 public:
  SimCommunicator(std::shared_ptr<SimWorld::State> state, int origin, Ledger& ledger,
                  const Progress& progress)
      : state_(std::move(state)),
        origin_(origin),
        generation_(state_->generation()),
        random_(state_->options().seed * 1000 + static_cast<std::uint64_t>(origin)),
        queue_(ledger, progress) {}

  int rank() const override { return generation_->rank_of(origin_); }
  int world_size() const override { return static_cast<int>(generation_->origins.size()); }
  void set_chunk_elements(std::int64_t elements) override { chunk_elements_ = elements; }

  Result<void> rejoin(std::uint32_t generation, std::uint64_t sequence) override {
    const auto current = state_->generation();
    if (current->number != generation) return {};
    queue_.wait_idle(std::chrono::hours(1));
    generation_ = current;
    queue_.reopen(sequence, generation);
    return {};
  }

  std::unique_ptr<Work> all_reduce(Buffer buffer, ReduceOp op, const char* name) override {
    return launch({Collective::all_reduce, buffer, {}, op, 0}, name, chunk_elements_);
  }
  std::unique_ptr<Work> broadcast(Buffer buffer, int root, const char* name) override {
    return launch({Collective::broadcast, buffer, {}, ReduceOp::sum, root}, name, chunk_elements_);
  }
  std::unique_ptr<Work> all_gather(Buffer send, Buffer receive, const char* name) override {
    // In one piece, as over MPI: pieces would land interleaved.
    return launch({Collective::all_gather, send, receive, ReduceOp::sum, 0}, name, send.elements);
  }
  std::unique_ptr<Work> barrier(const char* name) override {
    return launch({Collective::barrier, {}, {}, {}, 0}, name, 0);
  }
  std::unique_ptr<Work> reduce_scatter(Buffer buffer, ReduceOp op, const char* name) override {
    return launch({Collective::reduce_scatter, buffer, {}, op, 0}, name, stripe_of(world_size()));
  }
  std::unique_ptr<Work> all_gather_shares(Buffer buffer, const char* name) override {
    return launch({Collective::all_gather, buffer, buffer, ReduceOp::sum, 0}, name, stripe_of(world_size()));
  }
  std::unique_ptr<Work> pass_shares(Buffer buffer, int distance, const char* name) override {
    return launch({Collective::sendrecv, buffer, {}, ReduceOp::sum, distance}, name, stripe_of(world_size()));
  }

 private:
  std::unique_ptr<Work> launch(SimAttendance attendance, const char* name, std::int64_t chunk_elements) {
    const int variant = attendance.root + static_cast<int>(attendance.op);  // one of them is 0
    let_others_first();
    return queue_.launch(entry(attendance.kind, attendance.send, name, variant), [=, this]() -> Result<void> {
      be_late();
      state_->die_if_due(origin_, &SimOptions::Death::collective, ++operations_);
      trace("rank {}: {} of {}", origin_, to_string(attendance.kind), name);
      auto outcome = attend(attendance, chunk_of(attendance.send.elements, chunk_elements));
      if (!outcome)
        outcome.error().message = fmt::format("rank {}: {} of {} failed: {}", rank(),
                                              to_string(attendance.kind), name, outcome.error().message);
      return outcome;
    });
  }

  /// One meeting for each piece, and one for what has no elements.
  Result<void> attend(const SimAttendance& whole, std::int64_t chunk) {
    if (whole.send.elements <= chunk) return generation_->meeting.attend(rank(), whole);
    Result<void> outcome;
    in_chunks(whole.send.elements, chunk, [&](std::int64_t first, std::int64_t count) {
      SimAttendance piece = whole;
      piece.send.data = at(whole.send, first);
      piece.send.elements = count;
      if (whole.in_place()) piece.receive = piece.send;
      outcome = generation_->meeting.attend(rank(), piece);
      return outcome.has_value();
    });
    return outcome;
  }

  void be_late() {
    const auto most = state_->options().max_lateness.count();
    if (most > 0) sleep_for(std::chrono::microseconds(std::uniform_int_distribution<long>(0, most)(random_)));
  }

  std::shared_ptr<SimWorld::State> state_;
  int origin_;
  std::shared_ptr<SimGeneration> generation_;    // changes while the queue is idle
  std::int64_t chunk_elements_ = kDefaultChunk;  // of the launching thread
  std::mt19937_64 random_;                       // communication thread
  std::uint64_t operations_ = 0;                 // likewise
  LaunchQueue queue_;                            // last: its thread uses the members above
};

}  // namespace

std::unique_ptr<Communicator> SimWorld::communicator(int rank, Ledger& ledger, const Progress& progress) {
  return std::make_unique<SimCommunicator>(state_, rank, ledger, progress);
}

}  // namespace footplate
