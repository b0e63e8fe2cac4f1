#include "runtime/comm/batch_all_reduce.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "protocol/mutex.h"

namespace footplate {
namespace {

/// One order on all ranks.
constexpr DataType kTypes[] = {DataType::float32, DataType::float64, DataType::int64, DataType::uint8};

std::size_t bytes_of(const Buffer& buffer) {
  return static_cast<std::size_t>(buffer.elements) * size_of(buffer.type);
}

/// The buffers of one type, one behind the other.
struct Fused {
  std::vector<Buffer> parts;
  std::vector<std::byte> bytes;
  Buffer whole;
};

Fused fuse(const std::vector<Buffer>& buffers, DataType type) {
  Fused fused;
  for (const Buffer& buffer : buffers)
    if (buffer.type == type && buffer.elements > 0) fused.parts.push_back(buffer);
  for (const Buffer& part : fused.parts) {
    const auto* begin = static_cast<const std::byte*>(part.data);
    fused.bytes.insert(fused.bytes.end(), begin, begin + bytes_of(part));
  }
  fused.whole = {fused.bytes.data(), static_cast<std::int64_t>(fused.bytes.size() / size_of(type)), type};
  return fused;
}

void scatter(const Fused& fused) {
  const std::byte* from = fused.bytes.data();
  for (const Buffer& part : fused.parts) {
    std::memcpy(part.data, from, bytes_of(part));
    from += bytes_of(part);
  }
}

using Works = std::vector<std::unique_ptr<Work>>;

bool all_done(const Works& works) {
  return std::all_of(works.begin(), works.end(), [](const auto& work) { return work->done(); });
}

/// Keeps what a backend still writes into until its operations are done: those that are go whenever another
/// batch is given up. Never destroyed: a backend's thread may outlive main().
void keep_until_done(std::vector<Fused> fused, Works works) {
  struct Batch {
    std::vector<Fused> fused;
    Works works;
  };
  struct Kept {
    Mutex mutex;
    std::vector<Batch> batches GUARDED_BY(mutex);
  };
  static Kept& kept = *new Kept;
  const MutexLock lock(kept.mutex);
  std::erase_if(kept.batches, [](const Batch& one) { return all_done(one.works); });
  kept.batches.push_back({std::move(fused), std::move(works)});
}

class BatchWork : public Work {
 public:
  BatchWork(Communicator& communicator, const std::vector<Buffer>& buffers, ReduceOp op, const char* name) {
    for (const DataType type : kTypes)
      if (Fused fused = fuse(buffers, type); !fused.parts.empty()) fused_.push_back(std::move(fused));
    for (const Fused& fused : fused_) works_.push_back(communicator.all_reduce(fused.whole, op, name));
  }

  ~BatchWork() override {
    if (!done()) keep_until_done(std::move(fused_), std::move(works_));
  }

  bool done() const override { return all_done(works_); }

  Result<void> wait(Clock::time_point deadline) override {
    for (const auto& work : works_)
      if (auto outcome = work->wait(deadline); !outcome) return outcome;
    for (const Fused& fused : fused_) scatter(fused);
    fused_.clear();
    return {};
  }

 private:
  std::vector<Fused> fused_;  ///< until its results are back
  Works works_;
};

}  // namespace

std::unique_ptr<Work> batch_all_reduce(Communicator& communicator, const std::vector<Buffer>& buffers,
                                       ReduceOp op, const char* name) {
  return std::make_unique<BatchWork>(communicator, buffers, op, name);
}

}  // namespace footplate
