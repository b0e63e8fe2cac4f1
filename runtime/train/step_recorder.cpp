#include "runtime/train/step_recorder.h"

namespace footplate {

void StepRecorder::configure(bool on) {
  parts_.clear();
  on_ = on;
}

void StepRecorder::run(const std::string& name, const Inputs& inputs, const Body& body) {
  if (!on_) return body(inputs);
  std::vector<std::int64_t> shapes;
  for (const at::Tensor& input : inputs) {
    shapes.push_back(input.dim());
    shapes.insert(shapes.end(), input.sizes().begin(), input.sizes().end());
  }
  Part& part = parts_[{name, std::move(shapes)}];
  if (part.recording == nullptr) {
    const bool may = part.done >= kDirectly && parts_.size() <= kMostParts;
    if (!may || !record(part, inputs, body)) {
      ++part.done;
      return body(inputs);
    }
  } else {
    for (std::size_t i = 0; i < inputs.size(); ++i) part.inputs[i].copy_(inputs[i], /*non_blocking=*/true);
  }
  part.recording->start();
}

/// Without it the run goes on as before: slower, and the same otherwise.
bool StepRecorder::record(Part& part, const Inputs& inputs, const Body& body) {
  try {
    part.inputs.clear();
    for (const at::Tensor& input : inputs) part.inputs.push_back(input.clone());
    part.recording = device_.record([body, fixed = part.inputs] { body(fixed); });
    return true;
  } catch (const std::exception& error) {
    refusal_ = device_.explain(error);
    on_ = false;
    return false;
  }
}

}  // namespace footplate
