#include "runtime/comm/mpi/mpi_communicator.h"

#include <fmt/format.h>

#include <cstring>

#include "protocol/mutex.h"
#include "runtime/comm/mpi/mpi_session.h"

namespace footplate {
namespace {

MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::float32:
      return MPI_FLOAT;
    case DataType::float64:
      return MPI_DOUBLE;
    case DataType::int64:
      return MPI_INT64_T;
    case DataType::uint8:
      return MPI_UINT8_T;
  }
  return MPI_BYTE;
}

MPI_Op mpi_op(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return MPI_SUM;
    case ReduceOp::min:
      return MPI_MIN;
    case ReduceOp::max:
      return MPI_MAX;
  }
  return MPI_SUM;
}

std::byte* at(const Buffer& buffer, std::int64_t element) {
  return static_cast<std::byte*>(buffer.data) + static_cast<std::size_t>(element) * size_of(buffer.type);
}

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

}  // namespace

MpiCommunicator::MpiCommunicator(MpiSession& session, Ledger& ledger, const Progress& progress)
    : session_(session),
      comm_(session.data()),
      rank_(session.rank()),
      world_size_(session.world_size()),
      queue_(ledger, progress) {}

void MpiCommunicator::close() {
  MutexLock lock(mutex_);
  offer_ = {};
  queue_.close({ErrorKind::lost, "a rank was lost; nothing is reduced until the others have found together"});
}

void MpiCommunicator::offer() {
  MutexLock lock(mutex_);
  offer_ = {session_.members().generation, session_.data(), session_.rank(), session_.world_size()};
}

/// The lock: close() comes either before, and there is nothing to rejoin, or after, and ends that.
Result<void> MpiCommunicator::rejoin(std::uint32_t generation, std::uint64_t sequence) {
  MutexLock lock(mutex_);
  if (offer_.generation != generation) return {};
  comm_ = offer_.comm;
  rank_ = offer_.rank;
  world_size_ = offer_.world_size;
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
  return queue_.launch(
      entry(Collective::all_reduce, buffer, name, static_cast<int>(op)), [=, this]() -> Result<void> {
        if (world_size_ == 1) return {};
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

}  // namespace footplate
