#include "runtime/comm/mpi/mpi_communicator.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "protocol/mutex.h"
#include "runtime/comm/mpi/mpi_session.h"
#include "runtime/comm/mpi/mpi_types.h"
#include "runtime/comm/mpi/requests.h"
#include "runtime/comm/shares.h"

namespace footplate {
namespace {

/// Elements. Of fewer, two levels took as long as one or longer (two hosts, two to four ranks each).
constexpr std::int64_t kFewestInTwoLevels = std::int64_t{1} << 17;

/// Of what a rank receives before it is added. There is room for two: one arrives while the other is added.
constexpr std::size_t kReceived = kHugePage;

/// Calls `run(first, count)` for one piece after the other until one fails. MPI's code of the last.
template <class Run>
int in_pieces(std::int64_t elements, std::int64_t chunk, Run run) {
  int code = MPI_SUCCESS;
  in_chunks(elements, chunk, [&](std::int64_t first, std::int64_t count) {
    code = run(first, static_cast<int>(count));
    return code == MPI_SUCCESS;
  });
  return code;
}

/// The same for one stripe after the other: `run(first, block)`.
template <class Run>
int stripe_by_stripe(std::int64_t elements, int ranks, Run run) {
  int code = MPI_SUCCESS;
  in_stripes(elements, ranks, [&](std::int64_t first, std::int64_t block) {
    code = run(first, block);
    return code == MPI_SUCCESS;
  });
  return code;
}

}  // namespace

MpiCommunicator::MpiCommunicator(MpiSession& session, Ledger& ledger, const Progress& progress)
    : session_(session),
      comm_(session.data()),
      rank_(session.rank()),
      world_size_(session.world_size()),
      received_(huge_pages(2 * kReceived)),
      hosts_(session.host_numbers()),
      levels_(levels_of(hosts_)),
      queue_(ledger, progress) {}

TwoLevels MpiCommunicator::levels_of(const std::vector<int>& hosts) {
  return {comm_, HostGroups(hosts, rank_), [this](int code) {
            // Others wait for what this rank doesn't send any more.
            if (!session_.tells_loss(code)) session_.give_up();
          }};
}

bool MpiCommunicator::goes_in_two_levels(std::int64_t elements) const {
  return two_levels_ && levels_.groups().have_two_levels() && elements >= kFewestInTwoLevels;
}

void MpiCommunicator::close() {
  MutexLock lock(mutex_);
  offer_ = {};
  queue_.close({ErrorKind::lost, "a rank was lost; nothing is reduced until the others have found together"});
}

void MpiCommunicator::offer() {
  MutexLock lock(mutex_);
  offer_ = {session_.members().generation, session_.data(), session_.rank(), session_.world_size(),
            session_.host_numbers()};
}

/// The lock: close() comes either before, and there is nothing to rejoin, or after, and ends that.
Result<void> MpiCommunicator::rejoin(std::uint32_t generation, std::uint64_t sequence) {
  MutexLock lock(mutex_);
  if (offer_.generation != generation) return {};
  comm_ = offer_.comm;
  rank_ = offer_.rank;
  world_size_ = offer_.world_size;
  hosts_ = offer_.hosts;
  levels_ = levels_of(hosts_);
  queue_.reopen(sequence, generation);
  return {};
}

Result<void> MpiCommunicator::check(int code, const char* kind, const char* name) const {
  if (code == MPI_SUCCESS) return {};
  const auto error = session_.tells_loss(code) ? ErrorKind::lost : ErrorKind::failed;
  return fail(error, fmt::format("rank {}: {} of {} failed: {}; another rank may have died, see "
                                 "log/rank-N.log of each rank",
                                 rank_, kind, name, mpi_error_text(code)));
}

std::unique_ptr<Work> MpiCommunicator::all_reduce(Buffer buffer, ReduceOp op, const char* name) {
  const std::int64_t chunk = chunk_of(buffer.elements, chunk_elements_);
  const bool two_levels = goes_in_two_levels(buffer.elements);
  return queue_.launch(
      entry(Collective::all_reduce, buffer, name, static_cast<int>(op)), [=, this]() -> Result<void> {
        if (world_size_ == 1) return {};
        if (two_levels) return check(levels_.all_reduce(buffer, op), "all_reduce", name);
        const int code = in_pieces(buffer.elements, chunk, [&](std::int64_t first, int count) {
          return MPI_Allreduce(MPI_IN_PLACE, at(buffer, first), count, mpi_type(buffer.type), mpi_op(op),
                               comm_);
        });
        return check(code, "all_reduce", name);
      });
}

std::unique_ptr<Work> MpiCommunicator::broadcast(Buffer buffer, int root, const char* name) {
  const std::int64_t chunk = chunk_of(buffer.elements, chunk_elements_);
  return queue_.launch(entry(Collective::broadcast, buffer, name, root), [=, this]() -> Result<void> {
    if (world_size_ == 1) return {};
    const int code = in_pieces(buffer.elements, chunk, [&](std::int64_t first, int count) {
      return MPI_Bcast(at(buffer, first), count, mpi_type(buffer.type), root, comm_);
    });
    return check(code, "broadcast", name);
  });
}

std::unique_ptr<Work> MpiCommunicator::all_gather(Buffer send, Buffer receive, const char* name) {
  return queue_.launch(entry(Collective::all_gather, send, name), [=, this]() -> Result<void> {
    if (world_size_ == 1) {
      std::memcpy(receive.data, send.data, static_cast<std::size_t>(send.elements) * size_of(send.type));
      return {};
    }
    // One call: pieces would land interleaved. What is gathered here is small.
    if (send.elements > kLargestChunk)
      return fail(ErrorKind::failed, fmt::format("rank {}: all_gather of {}: {} elements, {} are the most",
                                                 rank_, name, send.elements, kLargestChunk));
    const int count = static_cast<int>(send.elements);
    const MPI_Datatype type = mpi_type(send.type);
    return check(MPI_Allgather(send.data, count, type, receive.data, count, type, comm_), "all_gather", name);
  });
}

std::unique_ptr<Work> MpiCommunicator::barrier(const char* name) {
  return queue_.launch(entry(Collective::barrier, {}, name), [=, this]() -> Result<void> {
    if (world_size_ == 1) return {};
    return check(MPI_Barrier(comm_), "barrier", name);
  });
}

/// A piece of a stripe, on its way to one rank and from another.
struct MpiCommunicator::Exchange {
  Buffer received = {};
  void* added_to = nullptr;  ///< this rank's own, of as many elements; null: it stays as it is received
  std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};

  /// Nothing begun: nothing to do.
  int finish(ReduceOp op) {
    const int code = wait_for(requests);
    if (code != MPI_SUCCESS) wait_for(requests);  // the other one may still write
    const auto count = static_cast<int>(std::exchange(received.elements, 0));
    if (code != MPI_SUCCESS || count == 0 || added_to == nullptr) return code;
    return MPI_Reduce_local(received.data, added_to, count, mpi_type(received.type), mpi_op(op));
  }
};

int MpiCommunicator::begin(Exchange& exchange, const Buffer& sent, int to, int from) {
  const auto count = static_cast<int>(exchange.received.elements);
  const MPI_Datatype type = mpi_type(sent.type);
  const int code = begin_receive(exchange.received.data, count, type, from, 0, comm_, &exchange.requests[0]);
  if (code != MPI_SUCCESS) return code;
  return begin_send(sent.data, count, type, to, 0, comm_, &exchange.requests[1]);
}

/// Each rank sends every other one its block and adds what it is sent, piece by piece: two ranks on one host
/// take a third of the time of Open MPI's (5.0) MPI_Reduce_scatter_block. Every rank sends and receives at
/// once, whichever rank is next.
int MpiCommunicator::reduce_stripe(const Buffer& stripe, std::int64_t block, ReduceOp op) {
  const auto at_once = static_cast<std::int64_t>(kReceived / size_of(stripe.type));
  std::array<Exchange, 2> exchanges;
  std::size_t turn = 0;
  int code = MPI_SUCCESS;
  for (int distance = 1; distance < world_size_ && code == MPI_SUCCESS; ++distance) {
    const int to = (rank_ + distance) % world_size_, from = (rank_ - distance + world_size_) % world_size_;
    code = in_pieces(block, at_once, [&](std::int64_t first, int count) {
      Exchange& one = exchanges[turn];
      one.received = {received_.get() + turn * kReceived, count, stripe.type};
      one.added_to = at(stripe, rank_ * block + first);
      turn = 1 - turn;
      const int begun = begin(one, {at(stripe, to * block + first), count, stripe.type}, to, from);
      return begun == MPI_SUCCESS ? exchanges[turn].finish(op) : begun;
    });
  }
  // Also after an error: what was begun still writes.
  for (Exchange& one : exchanges)
    if (const int finished = one.finish(op); code == MPI_SUCCESS) code = finished;
  return code;
}

/// Blocks come to where they belong, from one rank after the other.
int MpiCommunicator::gather_stripe(const Buffer& stripe, std::int64_t block) {
  std::array<Exchange, 2> exchanges;
  int code = MPI_SUCCESS;
  for (int distance = 1; distance < world_size_ && code == MPI_SUCCESS; ++distance) {
    const int from = rank_before(rank_, world_size_, distance);
    Exchange& one = exchanges.at(static_cast<std::size_t>(distance % 2));
    one.received = {at(stripe, from * block), block, stripe.type};
    code = begin(one, {at(stripe, rank_ * block), block, stripe.type},
                 rank_after(rank_, world_size_, distance), from);
    if (code == MPI_SUCCESS)
      code = exchanges.at(static_cast<std::size_t>((distance + 1) % 2)).finish(ReduceOp::sum);
  }
  for (Exchange& one : exchanges)
    if (const int finished = one.finish(ReduceOp::sum); code == MPI_SUCCESS) code = finished;
  return code;
}

std::unique_ptr<Work> MpiCommunicator::reduce_scatter(Buffer buffer, ReduceOp op, const char* name) {
  const bool two_levels = goes_in_two_levels(buffer.elements);
  return queue_.launch(
      entry(Collective::reduce_scatter, buffer, name, static_cast<int>(op)), [=, this]() -> Result<void> {
        if (world_size_ == 1) return {};
        if (two_levels) return check(levels_.reduce_scatter(buffer, op), "reduce_scatter", name);
        const int code =
            stripe_by_stripe(buffer.elements, world_size_, [&](std::int64_t first, std::int64_t block) {
              return reduce_stripe({at(buffer, first), block * world_size_, buffer.type}, block, op);
            });
        return check(code, "reduce_scatter", name);
      });
}

std::unique_ptr<Work> MpiCommunicator::all_gather_shares(Buffer buffer, const char* name) {
  const bool two_levels = goes_in_two_levels(buffer.elements);
  return queue_.launch(entry(Collective::all_gather, buffer, name), [=, this]() -> Result<void> {
    if (world_size_ == 1) return {};
    if (two_levels) return check(levels_.all_gather_shares(buffer), "all_gather", name);
    const int code =
        stripe_by_stripe(buffer.elements, world_size_, [&](std::int64_t first, std::int64_t block) {
          return gather_stripe({at(buffer, first), block * world_size_, buffer.type}, block);
        });
    return check(code, "all_gather", name);
  });
}

/// Each rank hears from one and tells one, whatever the hosts: two levels would save nothing.
std::unique_ptr<Work> MpiCommunicator::pass_shares(Buffer buffer, int distance, const char* name) {
  return queue_.launch(entry(Collective::sendrecv, buffer, name, distance), [=, this]() -> Result<void> {
    if (world_size_ == 1) return {};
    const int to = rank_after(rank_, world_size_, distance), from = rank_before(rank_, world_size_, distance);
    const int code =
        stripe_by_stripe(buffer.elements, world_size_, [&](std::int64_t first, std::int64_t block) {
          Exchange exchange{.received = {at(buffer, first + from * block), block, buffer.type}};
          const int begun =
              begin(exchange, {at(buffer, first + rank_ * block), block, buffer.type}, to, from);
          const int finished = exchange.finish(ReduceOp::sum);
          return begun == MPI_SUCCESS ? finished : begun;
        });
    return check(code, "sendrecv", name);
  });
}

}  // namespace footplate
