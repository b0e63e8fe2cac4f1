#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "protocol/result.h"
#include "runtime/device/gauges.h"
#include "runtime/device/mixed_precision.h"
#include "runtime/device/time_marks.h"
#include "runtime/state/state_table.h"

namespace footplate {

/// What an allocator has of a device's memory, in bytes.
struct DeviceMemory {
  std::int64_t allocated = 0;       ///< by tensors that live
  std::int64_t most_allocated = 0;  ///< since the last forget_peak()
  std::int64_t reserved = 0;        ///< with what is kept for the tensors to come
  std::int64_t total = 0;           ///< the device's
};

/// What an exception says, without the call stack that LibTorch adds.
std::string explain(const std::exception& error);
/// Whether it says that there was too little memory, of the host or of a device.
bool is_out_of_memory(const std::exception& error);

/// Work of a device that is started as one (ComputeDevice::record).
class Recording {
 public:
  virtual ~Recording() = default;
  /// Enqueues it, behind what the calling thread has enqueued.
  virtual void start() = 0;
};

/// Where a rank's tensors are and its steps are computed: the host's processors, or a device on which work is
/// enqueued and done later. Training thread, except where marked.
class ComputeDevice : public StateMemory {
 public:
  /// For LibTorch. Any thread.
  virtual at::Device where() const = 0;
  virtual bool is_host() const { return where().is_cpu(); }
  /// "cuda:0 (NVIDIA H200, 139.8 GiB)", "the processors (cpu)".
  virtual std::string description() const = 0;

  /// In what it computes where train.precision says `wanted`: in float32 where bf16 would be slower for want
  /// of instructions that multiply it. Any thread.
  virtual Precision computes_in(Precision wanted) const { return wanted; }

  /// Which one it is, also for other processes: "GPU-5e3f…". Empty: the host's processors. Any thread.
  virtual std::string id() const { return ""; }
  /// Why this process can compute nothing on it any more; nothing: it can. Doesn't wait for what is enqueued:
  /// for after an exception. Any thread that entered.
  virtual std::optional<std::string> failure() const { return std::nullopt; }

  /// A thread that is about to work on the device says so first. Any thread.
  virtual void enter_thread() const {}

  /// `host` as a tensor of this device; `host` may go. By way of pinned memory it doesn't wait for the copy.
  /// Any thread that entered.
  virtual at::Tensor bring(const at::Tensor& host, bool pinned) const = 0;
  /// Zeros that the host reads and writes, and copies to and from which needn't be waited for.
  virtual at::Tensor host_floats(std::int64_t elements) const = 0;

  /// Whether record() can be used.
  virtual bool can_record() const { return false; }
  /// What `body` enqueues, gradients included, as one piece of work in the memory that it names; nothing of
  /// it is done yet. What `body` does on the host is done now, and once: it reads nothing of the device's.
  /// Throws what can't be recorded; then nothing was done.
  virtual std::unique_ptr<Recording> record(const std::function<void()>& body);

  /// What it computes at most (peak_flops.h); nothing where that isn't known.
  virtual std::optional<double> peak_tflops(Precision /*precision*/) const { return std::nullopt; }

  /// What its allocator has; nothing where that isn't the device's own.
  virtual std::optional<DeviceMemory> memory() const { return std::nullopt; }
  virtual void forget_peak() {}
  /// Gives back what the allocator keeps without using it. Waits for what is enqueued.
  virtual void empty_cache() {}

  /// What it tells of itself; null: nothing. An error says why it can't. May take a while; any thread.
  virtual Result<std::unique_ptr<Gauges>> gauges() const { return std::unique_ptr<Gauges>(); }
  /// For times of what is enqueued; null: the host does the work itself, and its clock tells.
  virtual std::unique_ptr<TimeMarks> marks() const { return nullptr; }

  /// An exception of LibTorch's in words for people: where memory was short, how much there is and what
  /// helps. Any thread.
  virtual std::string explain(const std::exception& error) const { return footplate::explain(error); }

  /// For state_entry(): null where the host reaches the memory itself.
  StateMemory* state_memory() { return is_host() ? nullptr : this; }
};

/// The processors; one for the whole process.
ComputeDevice& host_device();

}  // namespace footplate
