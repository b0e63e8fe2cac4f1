#include "runtime/cuda/tuner_plugin.h"

#include <algorithm>
#include <memory>
#include <new>
#include <string>

#include "protocol/mutex.h"

namespace footplate {
namespace {

using nccl_abi::Status;

/// Of one communicator. One thread at a time launches on it, others look.
struct Context {
  Tuning* tuning = nullptr;
  std::uint64_t communicator = 0;
  std::atomic<std::uint32_t> version = 0;
  std::atomic<std::uint64_t> collectives = 0;
  std::atomic<std::uint64_t> hash = 0;
};

/// The only state that NCCL's entry points can share: they have no object.
struct Shared {
  Mutex mutex;  ///< never taken while something is launched
  std::vector<std::unique_ptr<Context>> contexts GUARDED_BY(mutex);
  Tuning* tuning GUARDED_BY(mutex) = nullptr;
};
Shared& shared() {
  static Shared instance;
  return instance;
}

/// Order counts: the same decisions in another order give another sum.
std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash ^= word;
  hash *= 0x9e3779b97f4a7c15ULL;  // 2^64 by the golden ratio: every bit reaches the upper ones
  return hash ^ (hash >> 32);
}

void sum_up(Context& context, int function, std::size_t bytes, int operations,
            const Tuning::Decision& decision) {
  std::uint64_t hash = context.hash.load(std::memory_order_relaxed);
  hash = mixed(hash, bytes);
  hash = mixed(hash, (static_cast<std::uint64_t>(operations) << 32) | static_cast<std::uint32_t>(function));
  hash = mixed(hash, (static_cast<std::uint64_t>(decision.version) << 32) |
                         (static_cast<std::uint64_t>(decision.channels & 0xff) << 16) |
                         (static_cast<std::uint64_t>(decision.algorithm & 0xff) << 8) |
                         static_cast<std::uint64_t>(decision.protocol & 0xff));
  context.hash.store(hash, std::memory_order_relaxed);
  context.version.store(decision.version, std::memory_order_relaxed);
  context.collectives.fetch_add(1, std::memory_order_release);
}

Status init(void** context, std::uint64_t communicator, std::size_t /*ranks*/, std::size_t /*nodes*/,
            nccl_abi::Logger /*logger*/, nccl_abi::NvlDomains* /*domains*/, void* /*constants*/) noexcept {
  *context = nullptr;
  try {
    Shared& all = shared();
    const MutexLock lock(all.mutex);
    if (all.tuning == nullptr) return nccl_abi::kSuccess;
    auto own = std::make_unique<Context>();
    own->tuning = all.tuning;
    own->communicator = communicator;
    *context = own.get();
    all.contexts.push_back(std::move(own));
  } catch (const std::bad_alloc&) {
    *context = nullptr;  // then NCCL chooses by itself, on this rank: the digests tell
  }
  return nccl_abi::kSuccess;
}

Status collective(void* context, int function, std::size_t bytes, int operations, float** costs,
                  int algorithms, int protocols, int /*registered*/, int* channels) noexcept {
  if (context == nullptr || costs == nullptr || algorithms <= 0 || protocols <= 0) return nccl_abi::kSuccess;
  Context& own = *static_cast<Context*>(context);
  // Declared as a table of rows, and one piece.
  const auto decision =
      own.tuning->decide(function, bytes, reinterpret_cast<float*>(costs), algorithms, protocols);
  if (decision.channels > 0 && channels != nullptr) *channels = decision.channels;
  sum_up(own, function, bytes, operations, decision);
  return nccl_abi::kSuccess;
}

Status finalize_tuner(void* context) noexcept {
  Shared& all = shared();
  const MutexLock lock(all.mutex);
  std::erase_if(all.contexts, [&](const auto& own) { return own.get() == context; });
  return nccl_abi::kSuccess;
}

constexpr nccl_abi::Tuner kTuner{"footplate", init, collective, finalize_tuner};

}  // namespace

void bind_tuner(Tuning* tuning) {
  Shared& all = shared();
  const MutexLock lock(all.mutex);
  all.tuning = tuning;
}

std::vector<CommunicatorDigest> tuner_digests(const Tuning& tuning) {
  std::vector<CommunicatorDigest> digests;
  Shared& all = shared();
  const MutexLock lock(all.mutex);
  for (const auto& own : all.contexts)
    if (own->tuning == &tuning) {
      TunerDigest digest;
      digest.collectives = own->collectives.load(std::memory_order_acquire);
      digest.version = own->version.load(std::memory_order_relaxed);
      digest.hash = own->hash.load(std::memory_order_relaxed);
      digests.push_back({own->communicator, digest});
    }
  return digests;
}

void restart_digests(const Tuning& tuning) {
  Shared& all = shared();
  const MutexLock lock(all.mutex);
  for (const auto& own : all.contexts)
    if (own->tuning == &tuning) {
      own->collectives = 0;
      own->hash = 0;
    }
}

Result<void> compare_digests(const std::vector<TunerDigest>& digests) {
  for (std::size_t rank = 1; rank < digests.size(); ++rank) {
    const TunerDigest& first = digests.front();
    const TunerDigest& other = digests[rank];
    if (first == other) continue;
    const std::string who = "rank " + std::to_string(rank) + " tunes NCCL otherwise than rank 0: ";
    if (first.version != other.version)
      return fail(ErrorKind::failed, who + "by rules " + std::to_string(other.version) + " instead of " +
                                         std::to_string(first.version));
    if (first.collectives != other.collectives)
      return fail(ErrorKind::failed, who + "after " + std::to_string(other.collectives) +
                                         " collectives instead of " + std::to_string(first.collectives));
    return fail(ErrorKind::failed,
                who + "by the same rules, so collectives, sizes or costs differ (are the machines alike?)");
  }
  return {};
}

}  // namespace footplate

/// What NCCL looks up by name. Version 6 without a say in chunk sizes.
extern "C" {
__attribute__((visibility("default"))) extern const footplate::nccl_abi::Tuner ncclTunerPlugin_v5;
__attribute__((visibility("default"))) extern const footplate::nccl_abi::TunerV6 ncclTunerPlugin_v6;
const footplate::nccl_abi::Tuner ncclTunerPlugin_v5 = footplate::kTuner;
const footplate::nccl_abi::TunerV6 ncclTunerPlugin_v6 = {footplate::kTuner, nullptr};
}
