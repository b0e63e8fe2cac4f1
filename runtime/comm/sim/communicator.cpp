#include "runtime/comm/sim/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "runtime/comm/chunks.h"
#include "runtime/comm/launch_queue.h"

namespace footplate {
namespace {

/// What a rank brings to a meeting.
struct Attendance {
  Collective kind = Collective::barrier;
  Buffer send;
  Buffer receive;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
};

std::size_t bytes(const Buffer& buffer) {
  return static_cast<std::size_t>(buffer.elements) * size_of(buffer.type);
}

template <class T>
void reduce_as(const std::vector<Attendance>& ranks) {
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
  for (std::size_t rank = 1; rank < ranks.size(); ++rank)
    std::memcpy(ranks[rank].send.data, total, bytes(ranks[0].send));
}

void all_reduce(const std::vector<Attendance>& ranks) {
  switch (ranks[0].send.type) {
    case DataType::float32:
      return reduce_as<float>(ranks);
    case DataType::float64:
      return reduce_as<double>(ranks);
    case DataType::int64:
      return reduce_as<std::int64_t>(ranks);
    case DataType::uint8:
      return reduce_as<std::uint8_t>(ranks);
  }
}

void broadcast(const std::vector<Attendance>& ranks) {
  const Buffer& root = ranks[static_cast<std::size_t>(ranks[0].root)].send;
  for (const Attendance& rank : ranks)
    if (rank.send.data != root.data) std::memcpy(rank.send.data, root.data, bytes(root));
}

void all_gather(const std::vector<Attendance>& ranks) {
  for (const Attendance& to : ranks) {
    auto* place = static_cast<std::byte*>(to.receive.data);
    for (const Attendance& from : ranks) {
      std::memcpy(place, from.send.data, bytes(from.send));
      place += bytes(from.send);
    }
  }
}

/// All ranks have to have called the same thing.
Result<void> check_same(const std::vector<Attendance>& ranks) {
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    const Attendance &first = ranks[0], &other = ranks[rank];
    if (first.kind == other.kind && first.send.elements == other.send.elements &&
        first.send.type == other.send.type && first.op == other.op && first.root == other.root)
      continue;
    return fail(ErrorKind::failed,
                fmt::format("ranks out of step: rank 0 is in {} of {} elements, rank {} in {} of {}",
                            to_string(first.kind), first.send.elements, rank, to_string(other.kind),
                            other.send.elements));
  }
  return {};
}

void execute(const std::vector<Attendance>& ranks) {
  if (ranks[0].send.elements == 0) return;  // perhaps without memory
  const Collective kind = ranks[0].kind;
  if (kind == Collective::all_reduce) all_reduce(ranks);
  if (kind == Collective::broadcast) broadcast(ranks);
  if (kind == Collective::all_gather) all_gather(ranks);
}

}  // namespace

/// Where the communication threads of all ranks come together; the last to arrive does the work.
class SimWorld::Meeting {
 public:
  Meeting(int world_size, SimOptions options)
      : options_(options), ranks_(static_cast<std::size_t>(world_size)) {}

  int world_size() const { return static_cast<int>(ranks_.size()); }
  const SimOptions& options() const { return options_; }

  Result<void> attend(int rank, const Attendance& attendance) {
    std::unique_lock lock(mutex_);
    if (!outcome_) return outcome_;
    ranks_[static_cast<std::size_t>(rank)] = attendance;
    const std::uint64_t round = round_;
    if (++arrived_ < world_size()) {
      met_.wait(lock, [&] { return round_ != round || !outcome_; });
      return outcome_;
    }
    outcome_ = check_same(ranks_);
    if (outcome_) execute(ranks_);
    arrived_ = 0;
    ++round_;
    met_.notify_all();
    return outcome_;
  }

  void fail_all(int dead_rank) {
    std::lock_guard lock(mutex_);
    outcome_ = fail(ErrorKind::failed, fmt::format("rank {} has died", dead_rank));
    met_.notify_all();
  }

 private:
  const SimOptions options_;
  std::mutex mutex_;
  std::condition_variable met_;
  std::vector<Attendance> ranks_;  // guarded by mutex_, like all below
  int arrived_ = 0;
  std::uint64_t round_ = 0;
  Result<void> outcome_;  // an error stays
};

namespace {

/// `Meeting` is the world's; a template because it is private to it.
template <class Meeting>
class SimCommunicator : public Communicator {
 public:
  SimCommunicator(std::shared_ptr<Meeting> meeting, int rank, Ledger& ledger, const Progress& progress)
      : meeting_(std::move(meeting)),
        rank_(rank),
        random_(meeting_->options().seed * 1000 + static_cast<std::uint64_t>(rank)),
        queue_(ledger, progress) {}

  int rank() const override { return rank_; }
  int world_size() const override { return meeting_->world_size(); }
  void set_chunk_elements(std::int64_t elements) override { chunk_elements_ = elements; }

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

 private:
  std::unique_ptr<Work> launch(Attendance attendance, const char* name, std::int64_t chunk_elements) {
    const int variant = attendance.root + static_cast<int>(attendance.op);  // one of them is 0
    return queue_.launch(entry(attendance.kind, attendance.send, name, variant), [=, this]() -> Result<void> {
      be_late();
      auto outcome = attend(attendance, chunk_of(attendance.send.elements, chunk_elements));
      if (!outcome)
        outcome.error().message = fmt::format("rank {}: {} of {} failed: {}", rank_,
                                              to_string(attendance.kind), name, outcome.error().message);
      return outcome;
    });
  }

  /// One meeting for each piece, and one for what has no elements.
  Result<void> attend(const Attendance& whole, std::int64_t chunk) {
    if (whole.send.elements <= chunk) return meeting_->attend(rank_, whole);
    Result<void> outcome;
    in_chunks(whole.send.elements, chunk, [&](std::int64_t first, std::int64_t count) {
      Attendance piece = whole;
      piece.send.data = static_cast<std::byte*>(whole.send.data) + bytes({nullptr, first, whole.send.type});
      piece.send.elements = count;
      outcome = meeting_->attend(rank_, piece);
      return outcome.has_value();
    });
    return outcome;
  }

  void be_late() {
    const auto most = meeting_->options().max_delay.count();
    if (most > 0)
      std::this_thread::sleep_for(
          std::chrono::microseconds(std::uniform_int_distribution<long>(0, most)(random_)));
  }

  std::shared_ptr<Meeting> meeting_;
  int rank_;
  std::int64_t chunk_elements_ = kDefaultChunk;  // of the launching thread
  std::mt19937_64 random_;                       // communication thread
  LaunchQueue queue_;                            // last: its thread uses the members above
};

}  // namespace

SimWorld::SimWorld(int world_size, SimOptions options)
    : meeting_(std::make_shared<Meeting>(world_size, options)) {}
SimWorld::~SimWorld() = default;

std::unique_ptr<Communicator> SimWorld::communicator(int rank, Ledger& ledger, const Progress& progress) {
  return std::make_unique<SimCommunicator<Meeting>>(meeting_, rank, ledger, progress);
}

void SimWorld::break_world(int dead_rank) {
  meeting_->fail_all(dead_rank);
}

}  // namespace footplate
