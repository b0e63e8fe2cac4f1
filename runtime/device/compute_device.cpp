#include "runtime/device/compute_device.h"

#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <cstring>
#include <stdexcept>

namespace footplate {
namespace {

class HostDevice final : public ComputeDevice {
 public:
  at::Device where() const override { return at::kCPU; }
  std::string description() const override { return "the processors (cpu)"; }
  at::Tensor bring(const at::Tensor& host) const override { return host; }
  at::Tensor host_floats(std::int64_t elements) const override { return at::zeros({elements}, at::kFloat); }
  void copy_out(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
  void copy_in(void* to, const void* from, std::size_t bytes) override { std::memcpy(to, from, bytes); }
};

}  // namespace

std::string explain(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  return of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
}

std::unique_ptr<Recording> ComputeDevice::record(const std::function<void()>& /*body*/) {
  throw std::logic_error(description() + " can't record work");
}

ComputeDevice& host_device() {
  static HostDevice host;
  return host;
}

}  // namespace footplate
