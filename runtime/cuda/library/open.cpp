// libfootplate_cuda.so: a GPU behind CudaDevice. Nothing else of footplate includes CUDA's headers.
#include <ATen/Context.h>
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/cuda/CUDAEvent.h>
#include <ATen/cuda/CUDAGraph.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/cuda/library/stream.h"
#include "runtime/cuda/nvml.h"
#include "runtime/device/peak_flops.h"
#include "runtime/device/stretch_sums.h"

namespace footplate {
namespace {

constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;
/// Copies to and from memory that isn't pinned go through two pieces of this size, so that one is copied by
/// the device while the host copies the other.
constexpr std::size_t kPiece = 16 << 20;

std::string gibibytes(std::int64_t bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f GiB", static_cast<double>(bytes) / kGibibyte);
  return text.data();
}

/// Memory of recorded work: one pool for all that is recorded at a time, since none of it runs beside
/// another, and what one leaves there nobody reads once the next has begun. A new one once all of it is gone:
/// LibTorch's allocator doesn't take up a pool again that it is about to free.
struct RecordedMemory {
  const c10::MempoolId_t id = at::cuda::graph_pool_handle();
};

/// A CUDA graph.
class Graph final : public Recording {
 public:
  /// `aside`: what is recorded is enqueued on it, and done nowhere yet.
  Graph(const c10::cuda::CUDAStream& aside, std::shared_ptr<const RecordedMemory> memory,
        const std::function<void()>& body)
      : memory_(std::move(memory)) {
    const c10::cuda::CUDAStreamGuard on(aside);
    // Of this thread: others wait for NCCL's stream meanwhile, and evaluate.
    graph_.capture_begin(memory_->id, cudaStreamCaptureModeThreadLocal);
    try {
      body();
    } catch (...) {
      give_up(aside.device_index());
      throw;
    }
    graph_.capture_end();
  }
  void start() override { graph_.replay(); }

 private:
  /// Ends a recording that came to nothing, as far as it has begun, so that the allocator goes on as before.
  void give_up(c10::DeviceIndex device) {
    try {
      graph_.capture_end();
    } catch (const std::exception&) {
      // Where CUDA took the recording back, LibTorch leaves both of its allocators in it, and the memory
      // taken. Where that failed later, they have left it, and the graph gives the memory back: not twice.
      const bool open =
          succeeds([&] { c10::cuda::CUDACachingAllocator::endAllocateToPool(device, memory_->id); });
      succeeds([&] { at::getHostAllocator(at::kCUDA)->end_allocate_to_pool(memory_->id); });
      if (open) {
        succeeds([&] { c10::cuda::CUDACachingAllocator::releasePool(device, memory_->id); });
        succeeds([&] { at::getHostAllocator(at::kCUDA)->release_pool(memory_->id); });
      }
    }
    static_cast<void>(cudaGetLastError());
  }

  template <class Body>
  static bool succeeds(Body body) {
    try {
      body();
      return true;
    } catch (const std::exception&) {  // it had ended
      return false;
    }
  }

  const std::shared_ptr<const RecordedMemory> memory_;
  at::cuda::CUDAGraph graph_;  ///< goes before its memory
};

/// Events on the calling thread's stream.
class EventMarks final : public TimeMarks {
 public:
  explicit EventMarks(c10::DeviceIndex device) : device_(device) {}
  ~EventMarks() override {
    for (const cudaEvent_t event : events_) static_cast<void>(cudaEventDestroy(event));
  }
  EventMarks(const EventMarks&) = delete;
  EventMarks& operator=(const EventMarks&) = delete;

  bool mark() override {
    const auto stream = c10::cuda::getCurrentCUDAStream(device_);
    auto capture = cudaStreamCaptureStatusNone;
    if (!done(cudaStreamIsCapturing(stream, &capture)) || capture != cudaStreamCaptureStatusNone)
      return false;
    if (marked_ == events_.size()) {
      cudaEvent_t event = nullptr;
      if (!done(cudaEventCreate(&event))) return false;
      events_.push_back(event);
    }
    if (!done(cudaEventRecord(events_[marked_], stream))) return false;
    ++marked_;
    return true;
  }

  std::vector<double> take_seconds() override {
    const std::size_t marks = std::exchange(marked_, 0);
    if (marks == 0 || !done(cudaEventSynchronize(events_[marks - 1]))) return {};
    std::vector<double> seconds;
    for (std::size_t i = 1; i < marks; ++i) {
      float milliseconds = 0;
      if (!done(cudaEventElapsedTime(&milliseconds, events_[i - 1], events_[i]))) return {};
      seconds.push_back(milliseconds / 1e3);
    }
    return seconds;
  }

 private:
  /// What has failed is the device's work, which says so itself; LibTorch isn't to take it for its own.
  static bool done(cudaError_t status) {
    if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
    return status == cudaSuccess;
  }

  const c10::DeviceIndex device_;
  std::vector<cudaEvent_t> events_;  ///< as many as a step has needed
  std::size_t marked_ = 0;           ///< of them
};

/// Sums that are on their way to the host.
class SumsOnTheWay final : public PendingHashes {
 public:
  SumsOnTheWay(const at::Tensor& sums, const c10::cuda::CUDAStream& stream)
      : there_(at::empty(sums.sizes(), at::TensorOptions(at::kLong).pinned_memory(true))) {
    there_.copy_(sums, /*non_blocking=*/true);
    come_.record(stream);
  }
  std::vector<std::uint64_t> take() override {
    come_.synchronize();
    const auto* first = there_.const_data_ptr<std::int64_t>();
    return {first, first + there_.numel()};
  }

 private:
  const at::Tensor there_;
  at::cuda::CUDAEvent come_;
};

/// As nvidia-smi has it.
std::string id_of(const cudaDeviceProp& properties) {
  std::string id = "GPU";
  for (std::size_t i = 0; i < sizeof(properties.uuid.bytes); ++i) {
    constexpr std::array<std::size_t, 5> kGroups{0, 4, 6, 8, 10};
    if (std::ranges::find(kGroups, i) != kGroups.end()) id += '-';
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto byte = static_cast<unsigned char>(properties.uuid.bytes[i]);
    id += {kDigits[byte / 16U], kDigits[byte % 16U]};
  }
  return id;
}

class Device final : public CudaDevice {
 public:
  Device(c10::DeviceIndex index, const cudaDeviceProp& properties)
      : index_(index),
        name_(properties.name),
        id_(id_of(properties)),
        total_(static_cast<std::int64_t>(properties.totalGlobalMem)),
        stream_(index),
        recording_stream_(c10::cuda::getStreamFromPool(/*isHighPriority=*/false, index)),
        sums_({at::kCUDA, index}) {
    for (at::Tensor& piece : pieces_)
      piece = at::empty({kPiece}, at::TensorOptions(at::kByte).pinned_memory(true));
  }

  at::Device where() const override { return {at::kCUDA, index_}; }
  std::string description() const override {
    return where().str() + " (" + name_ + ", " + gibibytes(total_) + ")";
  }
  NcclStream& nccl_stream() override { return stream_; }

  void enter_thread() const override { static_cast<void>(cudaSetDevice(index_)); }

  at::Tensor bring(const at::Tensor& host, bool pinned) const override {
    if (!pinned) return host.to(where());
    return host.pin_memory().to(where(), /*non_blocking=*/true);
  }
  at::Tensor host_floats(std::int64_t elements) const override {
    return at::zeros({elements}, at::TensorOptions(at::kFloat).pinned_memory(true));
  }

  void copy_out(void* to, const void* from, std::size_t bytes) override {
    const auto stream = c10::cuda::getCurrentCUDAStream(index_);
    const auto fetch = [&](std::size_t piece) {
      const std::size_t first = piece * kPiece;
      if (first < bytes)
        C10_CUDA_CHECK(cudaMemcpyAsync(staging(piece), static_cast<const std::byte*>(from) + first,
                                       std::min(kPiece, bytes - first), cudaMemcpyDeviceToHost, stream));
    };
    fetch(0);
    for (std::size_t piece = 0; piece * kPiece < bytes; ++piece) {
      stream.synchronize();
      fetch(piece + 1);
      const std::size_t first = piece * kPiece;
      std::memcpy(static_cast<std::byte*>(to) + first, staging(piece), std::min(kPiece, bytes - first));
    }
  }

  void copy_in(void* to, const void* from, std::size_t bytes) override {
    const auto stream = c10::cuda::getCurrentCUDAStream(index_);
    for (std::size_t piece = 0; piece * kPiece < bytes; ++piece) {
      const std::size_t first = piece * kPiece, size = std::min(kPiece, bytes - first);
      if (piece > 1) stream.synchronize();  // what was in this piece has left
      std::memcpy(staging(piece), static_cast<const std::byte*>(from) + first, size);
      C10_CUDA_CHECK(cudaMemcpyAsync(static_cast<std::byte*>(to) + first, staging(piece), size,
                                     cudaMemcpyHostToDevice, stream));
    }
    stream.synchronize();
  }

  std::size_t most_hashed() const override { return StretchSums::kMostBytes; }
  std::unique_ptr<PendingHashes> begin_hashes(
      std::span<const std::span<const std::byte>> stretches) override {
    return std::make_unique<SumsOnTheWay>(sums_.of(stretches), c10::cuda::getCurrentCUDAStream(index_));
  }

  std::optional<DeviceMemory> memory() const override {
    const auto stats = c10::cuda::CUDACachingAllocator::getDeviceStats(index_);
    constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
    return DeviceMemory{stats.allocated_bytes[kAll].current, stats.allocated_bytes[kAll].peak,
                        stats.reserved_bytes[kAll].current, total_};
  }
  std::string id() const override { return id_; }
  std::optional<std::string> failure() const override {
    return error_that_sticks(c10::cuda::getCurrentCUDAStream(index_));
  }

  void forget_peak() override { c10::cuda::CUDACachingAllocator::resetPeakStats(index_); }
  void empty_cache() override { c10::cuda::CUDACachingAllocator::emptyCache(); }

  std::optional<double> peak_tflops(Precision precision) const override {
    return footplate::peak_tflops(name_, precision);
  }
  bool can_record() const override { return true; }
  std::unique_ptr<Recording> record(const std::function<void()>& body) override {
    auto memory = recorded_memory_.lock();
    if (memory == nullptr) recorded_memory_ = memory = std::make_shared<RecordedMemory>();
    c10::cuda::getCurrentCUDAStream(index_).synchronize();
    empty_cache();  // the recording has memory of its own, and can't be given what lies unused
    return std::make_unique<Graph>(recording_stream_, std::move(memory), body);
  }

  Result<std::unique_ptr<Gauges>> gauges() const override {
    std::array<char, 32> bus_id{};
    if (cudaDeviceGetPCIBusId(bus_id.data(), static_cast<int>(bus_id.size()), index_) != cudaSuccess)
      return fail(ErrorKind::failed, "CUDA doesn't tell where the device is");
    return open_nvml(bus_id.data());
  }
  std::unique_ptr<TimeMarks> marks() const override { return std::make_unique<EventMarks>(index_); }

  std::string explain(const std::exception& error) const override {
    if (dynamic_cast<const c10::OutOfMemoryError*>(&error) == nullptr) return footplate::explain(error);
    const DeviceMemory now = *memory();
    return "out of memory on " + description() + ": tensors have " + gibibytes(now.allocated) + ", at most " +
           gibibytes(now.most_allocated) + ", the allocator keeps " +
           gibibytes(now.reserved - now.allocated) +
           " more; a smaller train.micro_batch or eval.batch_size, or train.precision = \"bf16\", needs less";
  }

 private:
  void* staging(std::size_t piece) { return pieces_[piece % pieces_.size()].data_ptr(); }

  const c10::DeviceIndex index_;
  const std::string name_, id_;
  const std::int64_t total_;
  CudaNcclStream stream_;
  /// One for all recordings: LibTorch keeps memory for cuBLAS for each stream.
  const c10::cuda::CUDAStream recording_stream_;
  std::weak_ptr<const RecordedMemory> recorded_memory_;
  std::array<at::Tensor, 2> pieces_;  ///< pinned
  StretchSums sums_;                  ///< from the start: later there may be no 16 MiB for it
};

/// Those that a rank may take, by their numbers; empty where all are left out.
std::vector<int> usable(int devices, const std::vector<std::string>& left_out) {
  std::vector<int> usable;
  for (int device = 0; device < devices; ++device) {
    cudaDeviceProp properties{};
    const bool is_known = cudaGetDeviceProperties(&properties, device) == cudaSuccess;
    if (!is_known) static_cast<void>(cudaGetLastError());  // else LibTorch takes it for its own
    if (!is_known || std::ranges::find(left_out, id_of(properties)) == left_out.end())
      usable.push_back(device);
  }
  return usable;
}

/// The one with the most free memory. What was made on the others is given back.
int freest(const std::vector<int>& devices) {
  int best = devices.front();
  std::size_t most = 0;
  for (const int device : devices) {
    std::size_t free = 0, total = 0;
    if (cudaSetDevice(device) != cudaSuccess || cudaMemGetInfo(&free, &total) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());  // else LibTorch takes it for its own
      continue;
    }
    static_cast<void>(cudaDeviceReset());
    if (free > most) {
      most = free;
      best = device;
    }
  }
  return best;
}

void be_deterministic() {
  // Else cuBLAS refuses. Before it is used first.
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/false);
  at::globalContext().setDeterministicCuDNN(true);
  at::globalContext().setDeterministicFillUninitializedMemory(false);
}

Result<std::unique_ptr<CudaDevice>> open(const CudaOptions& options) {
  int devices = 0;
  if (const cudaError_t status = cudaGetDeviceCount(&devices); status != cudaSuccess || devices == 0)
    return fail(ErrorKind::usage,
                std::string("no device can be used: ") +
                    (status != cudaSuccess ? cudaGetErrorString(status) : "none is visible") +
                    "; footplate doctor tells what is wrong; run.device = \"cpu\" trains without");
  const std::vector<int> left = usable(devices, options.left_out);
  const auto ranks = static_cast<int>(left.size());
  const int number = options.index >= 0 ? options.index : options.taken;
  if (number >= ranks)
    return fail(
        ErrorKind::usage,
        "there is no device for rank " + std::to_string(number) +
            " of this host: " + std::to_string(devices) + " visible (CUDA_VISIBLE_DEVICES)" +
            (ranks < devices ? ", of which " + std::to_string(devices - ranks) + " failed in this job" : "") +
            ", and a device takes one rank; start at most as many ranks (-n)");
  const int index = options.index >= 0 ? left[static_cast<std::size_t>(options.index)] : freest(left);
  if (options.deterministic) be_deterministic();
  C10_CUDA_CHECK(cudaSetDevice(index));
  at::globalContext().lazyInitDevice(at::kCUDA);
  cudaDeviceProp properties{};
  C10_CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
  return std::make_unique<Device>(static_cast<c10::DeviceIndex>(index), properties);
}

}  // namespace
}  // namespace footplate

extern "C" __attribute__((visibility("default"))) void footplate_open_cuda_device(
    const footplate::CudaOptions& options,
    footplate::Result<std::unique_ptr<footplate::CudaDevice>>& device) {
  try {
    device = footplate::open(options);
  } catch (const std::exception& error) {
    device =
        footplate::fail(footplate::ErrorKind::usage, std::string("no device can be used: ") + error.what());
  }
}
