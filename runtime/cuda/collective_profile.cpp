#include "runtime/cuda/collective_profile.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <new>
#include <tuple>

#include "protocol/mutex.h"
#include "runtime/cuda/tuning.h"

namespace footplate {
namespace {

// An event as a number, so that one which comes too late can't reach anything: generation, slot, channel,
// kind.
constexpr std::uintptr_t kOfCollective = 1;
constexpr std::uintptr_t kOfChannel = 2;
constexpr int kChannelBits = 8;
constexpr int kSlotBits = 16;
constexpr int kGenerationBits = 32;

std::uintptr_t event_of(std::uint32_t generation, std::size_t slot, int channel, std::uintptr_t kind) {
  return (static_cast<std::uintptr_t>(generation) << kGenerationBits) | (slot << kSlotBits) |
         (static_cast<std::uintptr_t>(channel) << kChannelBits) | kind;
}
std::uintptr_t kind_of(std::uintptr_t event) {
  return event & 0xff;
}
std::size_t slot_of(std::uintptr_t event) {
  return (event >> kSlotBits) & 0xffff;
}
std::uint32_t generation_of(std::uintptr_t event) {
  return static_cast<std::uint32_t>(event >> kGenerationBits);
}

/// "AllReduce" is all_reduce, "NVLS_TREE" nvls_tree.
bool same_name(std::string_view nccls, std::string_view ours) {
  std::size_t at = 0;
  for (const char c : nccls) {
    if (c == '_') continue;
    while (at < ours.size() && ours[at] == '_') ++at;
    if (at == ours.size() || std::tolower(static_cast<unsigned char>(c)) != ours[at]) return false;
    ++at;
  }
  return at == ours.size();
}

/// Its number, of `count`; -1: none of them.
template <class Enum>
int number_of_name(const char* name, int count) {
  if (name == nullptr) return -1;
  for (int i = 0; i < count; ++i)
    if (same_name(name, to_string(static_cast<Enum>(i)))) return i;
  return -1;
}

template <class Enum>
std::string name_of_number(int number) {
  return number < 0 ? "?" : std::string(to_string(static_cast<Enum>(number)));
}

/// "ncclFloat32" -> 4.
std::uint64_t size_of_type(const char* name) {
  const std::string_view type = name == nullptr ? "" : name;
  if (type.ends_with("64")) return 8;
  if (type.ends_with("32")) return 4;
  if (type.ends_with("16")) return 2;
  return 1;
}

}  // namespace

double CollectiveRow::mean_us() const {
  return count == 0 ? 0 : static_cast<double>(total_ns) / static_cast<double>(count) / 1000;
}

double CollectiveRow::bus_gb_per_s() const {
  if (total_ns == 0 || ranks == 0) return 0;
  const double others = static_cast<double>(ranks - 1) / ranks;
  const double factor = collective == "all_reduce"                                     ? 2 * others
                        : collective == "all_gather" || collective == "reduce_scatter" ? others
                                                                                       : 1;
  return static_cast<double>(bytes) / static_cast<double>(total_ns) * factor;
}

CollectiveProfile::CollectiveProfile() = default;

void CollectiveProfile::set_mask(int* mask) {
  const MutexLock lock(mutex_);
  mask_ = mask;
  set_events(measuring());
}

void CollectiveProfile::set_events(bool on) {
  on_ = on;
  const int events = on ? static_cast<int>(nccl_abi::kCollective | nccl_abi::kKernelChannel) : 0;
  if (mask_ != nullptr) __atomic_store_n(mask_, events, __ATOMIC_RELAXED);
}

void CollectiveProfile::measure(std::int64_t first, std::int64_t steps) {
  const MutexLock lock(mutex_);
  first_step_ = first;
  end_step_ = first + std::max<std::int64_t>(0, steps);
  row_count_ = 0;
  unfinished_ = left_out_ = 0;
  for (Open& open : open_) open.generation = 0;  // what is on its way belongs to before
  set_events(false);
}

void CollectiveProfile::at_step(std::int64_t step) {
  const bool on = step >= first_step_ && step < end_step_;
  if (on == measuring()) return;
  const MutexLock lock(mutex_);
  set_events(on);
}

std::uintptr_t CollectiveProfile::start(const nccl_abi::Description& description, int ranks) {
  if (description.type == nccl_abi::kCollective) return start_collective(description, ranks);
  if (description.type == nccl_abi::kKernelChannel) return start_channel(description);
  return 0;
}

std::uintptr_t CollectiveProfile::start_collective(const nccl_abi::Description& description, int ranks) {
  const auto& event = description.collective;
  Row key;
  key.function = number_of_name<NcclCollective>(event.function, 5);
  if (key.function < 0 || event.channels == 0) return 0;  // of another kind: send, receive
  key.algorithm = number_of_name<Algorithm>(event.algorithm, nccl_abi::kAlgorithms);
  key.protocol = number_of_name<WireProtocol>(event.protocol, nccl_abi::kProtocols);
  key.channels = event.channels;
  key.ranks = ranks;
  const auto function = static_cast<NcclCollective>(key.function);
  std::uint64_t bytes = event.count * size_of_type(event.data_type);
  if (function == NcclCollective::all_gather || function == NcclCollective::reduce_scatter)
    bytes *= static_cast<std::uint64_t>(ranks);  // counted by the part of one rank
  key.size_class = bytes == 0 ? 0 : static_cast<int>(std::bit_width(bytes)) - 1;

  const MutexLock lock(mutex_);
  const int row = row_for(key);
  if (row < 0) {
    ++left_out_;
    return 0;
  }
  const std::size_t slot = next_;
  next_ = (next_ + 1) % kOpen;
  Open& open = open_[slot];
  if (open.generation != 0) ++unfinished_;
  generation_ = generation_ == UINT32_MAX ? 1 : generation_ + 1;
  open = {.generation = generation_, .row = row, .channels = event.channels, .bytes = bytes};
  return event_of(generation_, slot, 0, kOfCollective);
}

std::uintptr_t CollectiveProfile::start_channel(const nccl_abi::Description& description) {
  const MutexLock lock(mutex_);
  const auto parent = reinterpret_cast<std::uintptr_t>(description.parent);
  Open* open = this->open(parent);
  if (open == nullptr || kind_of(parent) != kOfCollective) return 0;
  const std::uint64_t at = description.kernel_channel.timer_ns;
  open->first_ns = open->started == 0 ? at : std::min(open->first_ns, at);
  ++open->started;
  return event_of(open->generation, slot_of(parent), description.kernel_channel.channel, kOfChannel);
}

void CollectiveProfile::record(std::uintptr_t event, int state, const nccl_abi::StateArguments* arguments) {
  if (kind_of(event) != kOfChannel || state != nccl_abi::kKernelChannelStop || arguments == nullptr) return;
  const MutexLock lock(mutex_);
  Open* open = this->open(event);
  if (open == nullptr) return;
  open->last_ns = std::max(open->last_ns, arguments->kernel_channel.timer_ns);
  ++open->ended;
  settle(*open);
}

void CollectiveProfile::stop(std::uintptr_t event) {
  if (kind_of(event) != kOfCollective) return;
  const MutexLock lock(mutex_);
  Open* open = this->open(event);
  if (open == nullptr) return;
  open->launched = true;  // enqueued: its end is that of its channels
  settle(*open);
}

CollectiveProfile::Open* CollectiveProfile::open(std::uintptr_t event) {
  const std::size_t slot = slot_of(event);
  if (event == 0 || slot >= kOpen) return nullptr;
  Open& open = open_[slot];
  return open.generation != 0 && open.generation == generation_of(event) ? &open : nullptr;
}

void CollectiveProfile::settle(Open& open) {
  if (!open.launched || open.ended < open.channels) return;
  Row& row = rows_[static_cast<std::size_t>(open.row)];
  const std::uint64_t took = open.last_ns > open.first_ns ? open.last_ns - open.first_ns : 0;
  row.least_ns = row.count == 0 ? took : std::min(row.least_ns, took);
  row.most_ns = std::max(row.most_ns, took);
  row.total_ns += took;
  row.bytes += open.bytes;
  ++row.count;
  open.generation = 0;
}

int CollectiveProfile::row_for(const Row& key) {
  const auto identity = [](const Row& row) {
    return std::tuple(row.function, row.algorithm, row.protocol, row.channels, row.ranks, row.size_class);
  };
  for (std::size_t i = 0; i < row_count_; ++i)
    if (identity(rows_[i]) == identity(key)) return static_cast<int>(i);
  if (row_count_ == kRows) return -1;
  rows_[row_count_] = key;
  return static_cast<int>(row_count_++);
}

std::vector<CollectiveRow> CollectiveProfile::rows() const {
  std::vector<Row> copied;
  {
    const MutexLock lock(mutex_);
    copied.assign(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(row_count_));
  }
  std::erase_if(copied, [](const Row& row) { return row.count == 0; });
  std::stable_sort(copied.begin(), copied.end(), [](const Row& a, const Row& b) {
    return std::pair(a.function, a.size_class) < std::pair(b.function, b.size_class);
  });
  std::vector<CollectiveRow> result;
  for (const Row& row : copied)
    result.push_back({name_of_number<NcclCollective>(row.function), name_of_number<Algorithm>(row.algorithm),
                      name_of_number<WireProtocol>(row.protocol), row.channels, row.ranks,
                      std::uint64_t{1} << row.size_class, row.count, row.bytes, row.total_ns, row.least_ns,
                      row.most_ns});
  return result;
}

std::uint64_t CollectiveProfile::unfinished() const {
  const MutexLock lock(mutex_);
  return unfinished_;
}
std::uint64_t CollectiveProfile::left_out() const {
  const MutexLock lock(mutex_);
  return left_out_;
}

namespace {

using nccl_abi::Status;

/// Events come without their communicator's context: there is one profile in a process.
std::atomic<CollectiveProfile*> bound_profile = nullptr;

Status init(void** context, std::uint64_t /*communicator*/, int* mask, const char* /*name*/, int /*nodes*/,
            int ranks, int /*rank*/, nccl_abi::Logger /*logger*/) noexcept {
  // Of a communicator only its size is needed later.
  *context = std::bit_cast<void*>(static_cast<std::uintptr_t>(ranks));
  if (CollectiveProfile* profile = bound_profile; profile != nullptr) profile->set_mask(mask);
  return nccl_abi::kSuccess;
}

Status start(void* context, void** event, nccl_abi::Description* description) noexcept {
  CollectiveProfile* profile = bound_profile;
  const auto ranks = static_cast<int>(reinterpret_cast<std::uintptr_t>(context));
  const std::uintptr_t number =
      profile == nullptr || description == nullptr ? 0 : profile->start(*description, ranks);
  *event = std::bit_cast<void*>(number);
  return nccl_abi::kSuccess;
}

Status stop(void* event) noexcept {
  if (CollectiveProfile* profile = bound_profile; profile != nullptr)
    profile->stop(reinterpret_cast<std::uintptr_t>(event));
  return nccl_abi::kSuccess;
}

Status record(void* event, int state, nccl_abi::StateArguments* arguments) noexcept {
  if (CollectiveProfile* profile = bound_profile; profile != nullptr)
    profile->record(reinterpret_cast<std::uintptr_t>(event), state, arguments);
  return nccl_abi::kSuccess;
}

Status finalize(void* /*context*/) noexcept {
  return nccl_abi::kSuccess;
}

constexpr nccl_abi::Profiler kProfiler{"footplate", init, start, stop, record, finalize};

}  // namespace

void bind_profiler(CollectiveProfile* profile) {
  bound_profile = profile;
}

}  // namespace footplate

/// What NCCL looks up by name. Version 6 has more kinds of events, which are of no interest, and the same
/// calls.
extern "C" {
__attribute__((visibility("default"))) extern const footplate::nccl_abi::Profiler ncclProfiler_v5;
__attribute__((visibility("default"))) extern const footplate::nccl_abi::Profiler ncclProfiler_v6;
const footplate::nccl_abi::Profiler ncclProfiler_v5 = footplate::kProfiler;
const footplate::nccl_abi::Profiler ncclProfiler_v6 = footplate::kProfiler;
}
