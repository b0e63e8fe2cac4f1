#include "runtime/comm/faulty_communicator.h"

#include <chrono>
#include <utility>

#include "runtime/base/clock.h"

namespace footplate {
namespace {

void sleep(const Fault& fault) {
  sleep_for(std::chrono::milliseconds(fault.get("ms").value_or(0)));
}

}  // namespace

FaultyCommunicator::FaultyCommunicator(Communicator& inner, Progress& progress, int rank)
    : inner_(inner),
      progress_(progress),
      late_(fault("reduce_late", rank)),
      odd_(fault("odd_reduce", rank)),
      absent_(fault("eval_absent", rank)) {}

void FaultyCommunicator::begin_step(std::int64_t step) {
  step_ = step;
  first_ = true;
}

std::unique_ptr<Work> FaultyCommunicator::all_reduce(Buffer buffer, ReduceOp op, const char* name) {
  before(name, buffer.elements);
  return inner_.all_reduce(buffer, op, name);
}

std::unique_ptr<Work> FaultyCommunicator::reduce_scatter(Buffer buffer, ReduceOp op, const char* name) {
  before(name, buffer.elements);
  return inner_.reduce_scatter(buffer, op, name);
}

void FaultyCommunicator::before(std::string_view what, std::int64_t elements) {
  if (what == "gradients" && std::exchange(first_, false)) before_gradients(elements);
  if (what == "eval sums" && absent_) sleep(*absent_);
}

void FaultyCommunicator::before_gradients(std::int64_t elements) {
  if (late_ && late_->matches("step", step_)) {
    // As a rank whose backward pass takes longer.
    const Phase phase = progress_.phase();
    progress_.enter(Phase::backward);
    sleep(*late_);
    progress_.enter(phase);
  }
  if (odd_ && odd_->matches("step", step_)) {
    sum_.assign(static_cast<std::size_t>(elements), 0.0F);
    inner_.all_reduce({sum_.data(), elements, DataType::float32}, ReduceOp::sum, "gradients");
  }
}

}  // namespace footplate
