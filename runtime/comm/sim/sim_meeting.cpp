#include "runtime/comm/sim/sim_meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstring>

#include "protocol/mutex.h"
#include "runtime/comm/shares.h"

namespace footplate {
namespace {

std::size_t bytes(const Buffer& buffer) {
  return static_cast<std::size_t>(buffer.elements) * size_of(buffer.type);
}

/// Into rank 0's buffer.
template <class T>
void reduce_as(const std::vector<SimAttendance>& ranks) {
  const auto count = static_cast<std::size_t>(ranks[0].send.elements);
  T* total = static_cast<T*>(ranks[0].send.data);
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    const T* other = static_cast<const T*>(ranks[rank].send.data);
    for (std::size_t i = 0; i < count; ++i) {
      switch (ranks[0].op) {
        case ReduceOp::sum:
          total[i] = static_cast<T>(total[i] + other[i]);
          break;
        case ReduceOp::min:
          total[i] = std::min(total[i], other[i]);
          break;
        case ReduceOp::max:
          total[i] = std::max(total[i], other[i]);
          break;
      }
    }
  }
}

void reduce(const std::vector<SimAttendance>& ranks) {
  switch (ranks[0].send.type) {
    case DataType::float32:
      return reduce_as<float>(ranks);
    case DataType::float64:
      return reduce_as<double>(ranks);
    case DataType::int64:
      return reduce_as<std::int64_t>(ranks);
    case DataType::uint8:
      return reduce_as<std::uint8_t>(ranks);
    case DataType::bfloat16:
      assert(false && "bfloat16 isn't added up here");
  }
}

void all_reduce(const std::vector<SimAttendance>& ranks) {
  reduce(ranks);
  for (std::size_t rank = 1; rank < ranks.size(); ++rank)
    std::memcpy(ranks[rank].send.data, ranks[0].send.data, bytes(ranks[0].send));
}

/// The block of each rank in a stripe, as its place from the beginning, and its size; both in bytes.
template <class Run>
void for_blocks(const std::vector<SimAttendance>& ranks, Run run) {
  const std::size_t block = bytes(ranks[0].send) / ranks.size();
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) run(ranks[rank], rank * block, block);
}

std::byte* start(const SimAttendance& rank) {
  return static_cast<std::byte*>(rank.send.data);
}

/// What is undefined then is no number, so that whoever uses it is found out.
void reduce_scatter(const std::vector<SimAttendance>& ranks) {
  constexpr int kUndefined = 0xff;
  reduce(ranks);
  const std::vector<std::byte> sum(start(ranks[0]), start(ranks[0]) + bytes(ranks[0].send));
  for_blocks(ranks, [&](const SimAttendance& rank, std::size_t first, std::size_t size) {
    std::memset(rank.send.data, kUndefined, bytes(rank.send));
    std::memcpy(start(rank) + first, sum.data() + first, size);
  });
}

void all_gather_shares(const std::vector<SimAttendance>& ranks) {
  for_blocks(ranks, [&](const SimAttendance& from, std::size_t first, std::size_t size) {
    for (const SimAttendance& to : ranks)
      if (to.send.data != from.send.data) std::memcpy(start(to) + first, start(from) + first, size);
  });
}

void pass_shares(const std::vector<SimAttendance>& ranks) {
  const auto count = static_cast<int>(ranks.size());
  int rank = 0;
  for_blocks(ranks, [&](const SimAttendance& from, std::size_t first, std::size_t size) {
    const SimAttendance& to = ranks[static_cast<std::size_t>(rank_after(rank++, count, from.root))];
    if (to.send.data != from.send.data) std::memcpy(start(to) + first, start(from) + first, size);
  });
}

void broadcast(const std::vector<SimAttendance>& ranks) {
  const Buffer& root = ranks[static_cast<std::size_t>(ranks[0].root)].send;
  for (const SimAttendance& rank : ranks)
    if (rank.send.data != root.data) std::memcpy(rank.send.data, root.data, bytes(root));
}

void all_gather(const std::vector<SimAttendance>& ranks) {
  for (const SimAttendance& to : ranks) {
    auto* place = static_cast<std::byte*>(to.receive.data);
    for (const SimAttendance& from : ranks) {
      std::memcpy(place, from.send.data, bytes(from.send));
      place += bytes(from.send);
    }
  }
}

/// All ranks have to have called the same thing.
Result<void> check_same(const std::vector<SimAttendance>& ranks) {
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    const SimAttendance &first = ranks[0], &other = ranks[rank];
    if (first.kind == other.kind && first.send.elements == other.send.elements &&
        first.send.type == other.send.type && first.op == other.op && first.root == other.root &&
        first.in_place() == other.in_place())
      continue;
    return fail(ErrorKind::failed,
                fmt::format("ranks out of step: rank 0 is in {} of {} elements, rank {} in {} of {}",
                            to_string(first.kind), first.send.elements, rank, to_string(other.kind),
                            other.send.elements));
  }
  return {};
}

void execute(const std::vector<SimAttendance>& ranks) {
  if (ranks[0].send.elements == 0) return;  // perhaps without memory
  const Collective kind = ranks[0].kind;
  if (kind == Collective::all_reduce) all_reduce(ranks);
  if (kind == Collective::broadcast) broadcast(ranks);
  if (kind == Collective::all_gather) ranks[0].in_place() ? all_gather_shares(ranks) : all_gather(ranks);
  if (kind == Collective::reduce_scatter) reduce_scatter(ranks);
  if (kind == Collective::sendrecv) pass_shares(ranks);
}

}  // namespace

Result<void> SimMeeting::attend(int rank, const SimAttendance& attendance) {
  MutexLock lock(mutex_);
  if (!outcome_) return outcome_;
  ranks_[static_cast<std::size_t>(rank)] = attendance;
  const std::uint64_t round = round_;
  if (++arrived_ < static_cast<int>(ranks_.size())) {
    met_.wait(lock, [&]() REQUIRES(mutex_) { return round_ != round || !outcome_; });
    // A round that was complete counts, whatever came after.
    return round_ != round ? Result<void>() : outcome_;
  }
  outcome_ = check_same(ranks_);
  if (outcome_) execute(ranks_);
  arrived_ = 0;
  if (outcome_) ++round_;
  met_.notify_all();
  return outcome_;
}

void SimMeeting::fail_all(Error error) {
  MutexLock lock(mutex_);
  if (outcome_) outcome_ = tl::unexpected(std::move(error));
  met_.notify_all();
}

}  // namespace footplate
