#include "runtime/train/step_recorder.h"

namespace footplate {

void StepRecorder::configure(bool on) {
  parts_.clear();
  on_ = on;
}

void StepRecorder::run(const char* name, const at::Tensor& input, const Body& body) {
  if (!on_) return body(input);
  const auto shape = input.defined() ? input.sizes().vec() : std::vector<std::int64_t>();
  Part& part = parts_[{name, shape}];
  if (part.recording == nullptr) {
    const bool may = part.done >= kDirectly && parts_.size() <= kMostParts;
    if (!may || !record(part, input, body)) {
      ++part.done;
      return body(input);
    }
  } else if (input.defined()) {
    part.input.copy_(input, /*non_blocking=*/true);
  }
  part.recording->start();
}

/// Without it the run goes on as before: slower, and the same otherwise.
bool StepRecorder::record(Part& part, const at::Tensor& input, const Body& body) {
  try {
    if (input.defined()) part.input = input.clone();
    part.recording = device_.record([body, fixed = part.input] { body(fixed); });
    return true;
  } catch (const std::exception& error) {
    refusal_ = device_.explain(error);
    on_ = false;
    return false;
  }
}

}  // namespace footplate
