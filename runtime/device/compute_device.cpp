#include "runtime/device/compute_device.h"

#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <cstring>
#include <new>
#include <stdexcept>
#include <string_view>

#include "runtime/device/host_kernels/instructions.h"

namespace footplate {
namespace {

class HostDevice final : public ComputeDevice {
 public:
  at::Device where() const override { return at::kCPU; }
  std::string description() const override { return "the processors (cpu)"; }
  Precision computes_in(Precision wanted) const override {
    return multiplies_bf16() ? wanted : Precision::fp32;
  }
  at::Tensor bring(const at::Tensor& host, bool /*pinned*/) const override { return host; }
  at::Tensor host_floats(std::int64_t elements) const override { return at::zeros({elements}, at::kFloat); }
  void copy_out(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy_in(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
};

}  // namespace

std::string explain(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "out of memory on the host";
  const std::string said = error.what();
  if (const auto at = said.find("you tried to allocate"); at != said.npos && is_out_of_memory(error))
    return "out of memory on the host: " + said.substr(at, said.find(". ", at) - at);
  return of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
}

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr) return true;
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  // What LibTorch's allocator of host memory says, and cuBLAS, which allocates by itself.
  const std::string_view said = error.what();
  return said.find("can't allocate memory") != said.npos ||
         said.find("CUBLAS_STATUS_ALLOC_FAILED") != said.npos;
}

std::unique_ptr<Recording> ComputeDevice::record(const std::function<void()>& /*body*/) {
  throw std::logic_error(description() + " can't record work");
}

ComputeDevice& host_device() {
  static HostDevice host;
  return host;
}

}  // namespace footplate
