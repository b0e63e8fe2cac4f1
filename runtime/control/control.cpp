#include "runtime/control/control.h"

#include <utility>

#include "runtime/control/control_loop.h"

namespace footplate {

Control::Control(ControlOptions options) : loop_(std::make_unique<ControlLoop>(std::move(options))) {}
Control::~Control() = default;
void Control::set_steerable(Steerable& steerable) {
  loop_->set_steerable(steerable);
}
void Control::start() {
  loop_->start();
}
StepGate& Control::gate() {
  return loop_->gate().training();
}
void Control::request_stop(const char* reason, bool resumable) noexcept {
  loop_->request_stop(reason, resumable);
}
void Control::take(ConsoleMessage message) {
  loop_->take(std::move(message));
}
void Control::training_ended() {
  loop_->training_ended();
}
void Control::settle(std::chrono::milliseconds at_most) {
  loop_->settle(at_most);
}
void Control::finish(const RunResult& result) {
  loop_->finish(result);
}
RunStatus Control::status() const {
  return loop_->status();
}
Control::Held Control::held() const {
  return {loop_->gate().time_at_fences(), loop_->gate().stops_at_fences()};
}

}  // namespace footplate
