#include "runtime/comm/mpi/two_levels.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "runtime/comm/chunks.h"
#include "runtime/comm/mpi/mpi_types.h"
#include "runtime/comm/mpi/requests.h"
#include "runtime/comm/shares.h"

namespace footplate {
namespace {

/// Elements of a rank's block of a piece: from the first on a link of 1 Gbit/s is kept busy, below the second
/// a message costs more than what is in it (scripts/bench hierarchy).
constexpr std::int64_t kLargeBlock = std::int64_t{1} << 16, kSmallBlock = std::int64_t{1} << 14;
/// Of a piece, however many ranks there are.
constexpr std::int64_t kLargestPiece = std::int64_t{1} << 22;
/// A buffer is cut into as many pieces at least, where its blocks don't get small by that: what is done with
/// them overlaps.
constexpr std::int64_t kFewestPieces = 4;

/// Elements that are worked on at once.
std::int64_t piece_of(std::int64_t elements, int ranks) {
  const std::int64_t most = std::min(kLargeBlock * ranks, kLargestPiece);
  return std::clamp((elements + kFewestPieces - 1) / kFewestPieces, std::min(kSmallBlock * ranks, most),
                    most);
}

/// Bytes of a message between hosts: Open MPI sends as many over TCP at once (btl_tcp_eager_limit has 65,536,
/// with its header). Of a larger one sender and receiver have each other's request, and Open MPI (5.0.11)
/// crashes where one of them has given that up, after a loss, and hears from the other one late.
constexpr std::size_t kNetworkMessage = 60 << 10;

/// What a message is. Between two ranks messages with one tag keep their order; pieces overtake each other.
enum Tag { kToCollector = 1, kAcross, kBack, kOwnRound, kCarriedRound };

/// A block of a buffer for each rank, one `stride` behind the other. The last ones may be short or empty.
struct Piece {
  Buffer whole = {};  ///< from the first block on
  std::int64_t stride = 0, length = 0;

  Buffer block(int rank) const {
    const std::int64_t first = std::min(rank * stride, whole.elements);
    return {at(whole, first), std::clamp<std::int64_t>(whole.elements - first, 0, length), whole.type};
  }
};

std::vector<Piece> pieces_of(const Buffer& buffer, int ranks) {
  std::vector<Piece> pieces;
  in_chunks(buffer.elements, piece_of(buffer.elements, ranks), [&](std::int64_t first, std::int64_t count) {
    const std::int64_t length = padded(count, ranks) / ranks;
    pieces.push_back({{at(buffer, first), count, buffer.type}, length, length});
    return true;
  });
  return pieces;
}

/// Of each stripe a part of every block.
std::vector<Piece> pieces_of_shares(const Buffer& buffer, int ranks) {
  std::vector<Piece> pieces;
  const std::int64_t most = std::max(piece_of(buffer.elements, ranks) / ranks, kBlockAlign);
  in_stripes(buffer.elements, ranks, [&](std::int64_t stripe, std::int64_t block) {
    return in_chunks(block, most, [&](std::int64_t first, std::int64_t count) {
      pieces.push_back({{at(buffer, stripe + first), block * ranks - first, buffer.type}, block, count});
      return true;
    });
  });
  return pieces;
}

/// One operation. After an error nothing more is begun, and what was begun is waited for: it still writes.
class Operation {
 public:
  using Failed = std::function<void(int)>;
  Operation(MPI_Comm comm, const HostGroups& groups, ReduceOp op, const Failed& failed)
      : comm_(comm), groups_(groups), op_(op), failed_(failed) {}

  enum class Part { all_reduce, reduce_scatter, all_gather };
  int run(const std::vector<Piece>& pieces, Part part);

 private:
  /// Some of the messages of a piece, which is on its way between the hosts.
  struct Crossing {
    Piece piece = {};
    std::vector<MPI_Request> received, rest;
    std::vector<std::vector<MPI_Request>> back;  ///< of each carried block
    std::vector<std::byte> room = {};            ///< for what the other hosts have for this rank's block
  };

  void sum_up_within(const Piece& piece);
  void send_across(Crossing& crossing);
  void add_across(Crossing& crossing);
  void send_back(Crossing& crossing);
  void hand_round(Crossing& crossing);

  void note(int code);
  static std::int64_t at_once(const Buffer& block, Tag tag);
  template <class Begin>
  void begin(std::vector<MPI_Request>& requests, const Buffer& block, Tag tag, Begin one);
  void send(std::vector<MPI_Request>& requests, const Buffer& block, int to, Tag tag);
  void receive(std::vector<MPI_Request>& requests, const Buffer& block, int from, Tag tag);
  void wait(MPI_Request& request) { note(wait_for({&request, 1})); }
  void wait_for_all(std::vector<MPI_Request>& requests);
  void add(const Buffer& received, const Buffer& block);

  MPI_Comm comm_;
  const HostGroups& groups_;
  const ReduceOp op_;
  const Failed& failed_;
  int code_ = MPI_SUCCESS;
  std::array<Crossing, 3> crossings_;
  std::vector<std::byte> room_;  ///< for what the other ranks of this host have
};

void Operation::note(int code) {
  if (code == MPI_SUCCESS || code_ != MPI_SUCCESS) return;
  code_ = code;
  failed_(code);
}

std::int64_t Operation::at_once(const Buffer& block, Tag tag) {
  const bool crosses = tag == kAcross || tag == kBack;
  return crosses ? static_cast<std::int64_t>(kNetworkMessage / size_of(block.type)) : kLargestChunk;
}

template <class Begin>
void Operation::begin(std::vector<MPI_Request>& requests, const Buffer& block, Tag tag, Begin one) {
  in_chunks(block.elements, at_once(block, tag), [&](std::int64_t first, std::int64_t count) {
    if (code_ == MPI_SUCCESS)
      note(one(at(block, first), static_cast<int>(count), &requests.emplace_back(MPI_REQUEST_NULL)));
    return code_ == MPI_SUCCESS;
  });
}

void Operation::send(std::vector<MPI_Request>& requests, const Buffer& block, int to, Tag tag) {
  begin(requests, block, tag, [&](const void* data, int count, MPI_Request* request) {
    return begin_send(data, count, mpi_type(block.type), to, tag, comm_, request);
  });
}

void Operation::receive(std::vector<MPI_Request>& requests, const Buffer& block, int from, Tag tag) {
  begin(requests, block, tag, [&](void* data, int count, MPI_Request* request) {
    return begin_receive(data, count, mpi_type(block.type), from, tag, comm_, request);
  });
}

void Operation::wait_for_all(std::vector<MPI_Request>& requests) {
  for (MPI_Request& request : requests) wait(request);
  requests.clear();
}

void Operation::add(const Buffer& received, const Buffer& block) {
  if (code_ != MPI_SUCCESS || block.elements == 0) return;
  note(MPI_Reduce_local(received.data, block.data, static_cast<int>(block.elements), mpi_type(block.type),
                        mpi_op(op_)));
}

/// Each rank has then this host's sums of the blocks that it collects.
void Operation::sum_up_within(const Piece& piece) {
  const auto& neighbours = groups_.neighbours();
  std::vector<Buffer> blocks;
  std::size_t bytes = 0;
  for (const int rank : groups_.collected())
    if (const Buffer block = piece.block(rank); block.elements > 0) blocks.push_back(block);
  for (const Buffer& block : blocks) bytes += static_cast<std::size_t>(block.elements) * size_of(block.type);
  if (room_.size() < bytes * neighbours.size()) room_.resize(bytes * neighbours.size());
  std::vector<MPI_Request> receives, sends;
  std::vector<Buffer> received;
  std::byte* free = room_.data();
  for (const int neighbour : neighbours)
    for (const Buffer& block : blocks) {
      received.push_back({free, block.elements, block.type});
      free = at(received.back(), block.elements);
      receive(receives, received.back(), neighbour, kToCollector);
    }
  for (std::size_t i = 0; i < neighbours.size(); ++i)
    for (const int rank : groups_.collected_by(i))
      send(sends, piece.block(rank), neighbours[i], kToCollector);
  for (std::size_t i = 0; i < receives.size(); ++i) {
    wait(receives[i]);
    add(received[i], blocks[i % blocks.size()]);
  }
  wait_for_all(sends);
}

void Operation::send_across(Crossing& crossing) {
  const Buffer own = crossing.piece.block(groups_.rank());
  const std::size_t bytes = static_cast<std::size_t>(own.elements) * size_of(own.type);
  crossing.room.resize(bytes * groups_.carriers().size());
  std::byte* free = crossing.room.data();
  for (const int carrier : groups_.carriers()) {
    receive(crossing.received, {free, own.elements, own.type}, carrier, kAcross);
    free += bytes;
  }
  for (const int rank : groups_.carried()) send(crossing.rest, crossing.piece.block(rank), rank, kAcross);
}

/// This rank's own block is the sum of all then.
void Operation::add_across(Crossing& crossing) {
  const Buffer own = crossing.piece.block(groups_.rank());
  wait_for_all(crossing.received);
  Buffer received = {crossing.room.data(), own.elements, own.type};
  for (std::size_t i = 0; i < groups_.carriers().size(); ++i) {
    add(received, own);
    received.data = at(received, own.elements);
  }
  wait_for_all(crossing.rest);  // what they send is written by send_back()
}

void Operation::send_back(Crossing& crossing) {
  const Piece& piece = crossing.piece;
  const auto& neighbours = groups_.neighbours();
  crossing.back.clear();
  for (const int rank : groups_.carried())
    receive(crossing.back.emplace_back(), piece.block(rank), rank, kBack);
  for (std::size_t i = 0; i < neighbours.size(); ++i)
    for (const int rank : groups_.collected_by(i))
      receive(crossing.rest, piece.block(rank), neighbours[i],
              rank == neighbours[i] ? kOwnRound : kCarriedRound);
  const Buffer own = piece.block(groups_.rank());
  for (const int carrier : groups_.carriers()) send(crossing.rest, own, carrier, kBack);
  for (const int neighbour : neighbours) send(crossing.rest, own, neighbour, kOwnRound);
}

void Operation::hand_round(Crossing& crossing) {
  for (std::size_t i = 0; i < crossing.back.size(); ++i) {
    wait_for_all(crossing.back[i]);
    const Buffer block = crossing.piece.block(groups_.carried()[i]);
    for (const int neighbour : groups_.neighbours()) send(crossing.rest, block, neighbour, kCarriedRound);
  }
  wait_for_all(crossing.rest);
}

/// One piece behind the other: each waits only for what every rank does earlier in this list.
int Operation::run(const std::vector<Piece>& pieces, Part part) {
  const std::size_t count = pieces.size();
  for (std::size_t turn = 0; turn < count + 2; ++turn) {
    if (turn < count) {
      Crossing& first = crossings_[turn % crossings_.size()];
      first.piece = pieces[turn];
      if (part != Part::all_gather) {
        sum_up_within(first.piece);
        send_across(first);
      }
    }
    if (turn >= 1 && turn <= count) {
      Crossing& second = crossings_[(turn - 1) % crossings_.size()];
      if (part != Part::all_gather) add_across(second);
      if (part != Part::reduce_scatter) send_back(second);
    }
    if (turn >= 2 && part != Part::reduce_scatter) hand_round(crossings_[(turn - 2) % crossings_.size()]);
  }
  return code_;
}

}  // namespace

int TwoLevels::all_reduce(const Buffer& buffer, ReduceOp op) const {
  return Operation(comm_, groups_, op, failed_)
      .run(pieces_of(buffer, groups_.ranks()), Operation::Part::all_reduce);
}

int TwoLevels::reduce_scatter(const Buffer& buffer, ReduceOp op) const {
  return Operation(comm_, groups_, op, failed_)
      .run(pieces_of_shares(buffer, groups_.ranks()), Operation::Part::reduce_scatter);
}

int TwoLevels::all_gather_shares(const Buffer& buffer) const {
  return Operation(comm_, groups_, ReduceOp::sum, failed_)
      .run(pieces_of_shares(buffer, groups_.ranks()), Operation::Part::all_gather);
}

}  // namespace footplate
