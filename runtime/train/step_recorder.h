#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/compute_device.h"

namespace footplate {

/// Parts of a step that a device records once and starts as one from then on (train.cuda_graph): what the
/// host needs for hundreds of small operations it needs once. A part is the same work in the same memory
/// every time, but for its input, which is copied to where the recording reads it. Training thread.
///
/// No part has a collective in it: NCCL waits for recordings of its work before it aborts, without a limit.
class StepRecorder {
 public:
  /// Enqueues a part. What it reads that changes from step to step is in `inputs`, or has its own place on
  /// the device.
  using Inputs = std::vector<at::Tensor>;
  using Body = std::function<void(const Inputs& inputs)>;

  /// A part is done directly so often before it is recorded: what libraries set up at their first use can't
  /// be.
  static constexpr int kDirectly = 3;
  /// More shapes than that aren't recorded: each keeps memory.
  static constexpr std::size_t kMostParts = 8;

  explicit StepRecorder(ComputeDevice& device) : device_(device) {}

  /// Forgets what was recorded; off: all parts are done directly. Where what a body does has changed.
  void configure(bool on);

  /// Does a part. Its name and the shapes of `inputs` tell parts apart. Where it can't be
  /// recorded it is done directly, as all parts are until the next configure().
  void run(const std::string& name, const Inputs& inputs, const Body& body);

  /// Why it was given up, once.
  std::optional<std::string> take_refusal() { return std::exchange(refusal_, std::nullopt); }

 private:
  struct Part {
    int done = 0;
    Inputs inputs;  ///< where the recording reads them
    std::unique_ptr<Recording> recording;
  };
  bool record(Part& part, const Inputs& inputs, const Body& body);

  ComputeDevice& device_;
  bool on_ = false;
  std::map<std::pair<std::string, std::vector<std::int64_t>>, Part> parts_;
  std::optional<std::string> refusal_;
};

}  // namespace footplate
