#pragma once

#include <functional>

#include "runtime/device/compute_device.h"

namespace footplate {

/// A device that fails when a test wants it to (FaultyTraining), in place of the processors.
class FaultyDevice final : public ComputeDevice {
 public:
  /// `failure`: failure().
  FaultyDevice(ComputeDevice& inner, std::string id, std::function<std::optional<std::string>()> failure);

  at::Device where() const override { return inner_.where(); }
  std::string description() const override { return inner_.description(); }
  std::string id() const override { return id_; }
  std::optional<std::string> failure() const override { return failure_(); }
  Precision computes_in(Precision wanted) const override { return inner_.computes_in(wanted); }
  at::Tensor bring(const at::Tensor& host, bool pinned) const override { return inner_.bring(host, pinned); }
  at::Tensor host_floats(std::int64_t elements) const override { return inner_.host_floats(elements); }
  std::optional<double> peak_tflops(Precision precision) const override {
    return inner_.peak_tflops(precision);
  }
  std::string explain(const std::exception& error) const override { return inner_.explain(error); }
  void copy_out(void* to, const void* from, std::size_t bytes) override { inner_.copy_out(to, from, bytes); }
  void copy_in(void* to, const void* from, std::size_t bytes) override { inner_.copy_in(to, from, bytes); }

 private:
  ComputeDevice& inner_;
  const std::string id_;
  const std::function<std::optional<std::string>()> failure_;
};

}  // namespace footplate
