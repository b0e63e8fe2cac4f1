#include "runtime/profile/step_trace.h"

#include <ATen/record_function.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <set>
#include <utility>

#include "runtime/device/compute_device.h"

namespace footplate {
namespace {

namespace kineto = torch::autograd::profiler;
using torch::profiler::impl::ActivityType;

std::atomic<std::size_t> counted_operations{0};

std::unique_ptr<at::ObserverContext> count_operation(const at::RecordFunction& /*operation*/) {
  counted_operations.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

torch::profiler::impl::ProfilerConfig configuration() {
  return torch::profiler::impl::ProfilerConfig(torch::profiler::impl::ProfilerState::KINETO,
                                               /*report_input_shapes=*/false, /*profile_memory=*/false);
}

/// Where it ran: a device's stream, the training thread, or another one.
std::string row_of(const kineto::KinetoEvent& event, std::uint64_t training) {
  if (event.deviceType() != c10::DeviceType::CPU)
    return fmt::format("{}:{} stream {}", c10::DeviceTypeName(event.deviceType(), /*lower_case=*/true),
                       event.deviceIndex(), event.deviceResourceId());
  if (event.startThreadId() == training) return "training";
  return fmt::format("thread {}", event.startThreadId());
}

}  // namespace

StepTrace::~StepTrace() {
  if (recording_) end();
}

Result<void> StepTrace::begin() {
  std::set<ActivityType> activities{ActivityType::CPU};
  if (!device_.is_host()) activities.insert(ActivityType::CUDA);
  counted_operations = 0;
  try {
    kineto::prepareProfiler(configuration(), activities);
    kineto::enableProfiler(configuration(), activities);
  } catch (const std::exception& error) {
    return fail(ErrorKind::failed, "LibTorch's profiler doesn't start: " + explain(error));
  }
  // As the profiler's own callback: of this thread, and of those that work with its state.
  counter_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&count_operation));
  recording_ = true;
  return {};
}

bool StepTrace::is_full() const {
  return counted_operations.load(std::memory_order_relaxed) >= kMostEvents;
}

std::vector<TraceEvent> StepTrace::end() {
  recording_ = false;
  at::removeCallback(counter_);
  const auto found = kineto::disableProfiler();
  const std::uint64_t training = at::RecordFunction::currentThreadId();
  std::vector<TraceEvent> events;
  for (const kineto::KinetoEvent& event : found->events())
    if (!event.isHiddenEvent())
      events.push_back({row_of(event, training), event.name(), static_cast<std::int64_t>(event.startNs()),
                        static_cast<std::int64_t>(event.durationNs())});
  std::ranges::stable_sort(events, {}, &TraceEvent::start_ns);
  if (events.size() > kMostEvents) events.resize(kMostEvents);
  return events;
}

}  // namespace footplate
