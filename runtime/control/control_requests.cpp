#include "runtime/control/control_requests.h"

namespace footplate {

bool ControlRequests::request_stop(const char* reason, bool resumable) noexcept {
  const char* none = nullptr;
  if (stop_reason_.load() != nullptr) return false;
  stop_resumable_.store(resumable);
  return stop_reason_.compare_exchange_strong(none, reason);
}

void ControlRequests::add_message(ConsoleMessage message) {
  MutexLock lock(mutex_);
  messages_.push_back(std::move(message));
}

void ControlRequests::add_finding(const Watchdog::Finding& finding) {
  MutexLock lock(mutex_);
  findings_.push_back(finding);
}

std::optional<ControlRequests::Stop> ControlRequests::take_stop() {
  const char* reason = stop_reason_.load();
  if (reason == nullptr || std::exchange(stop_told_, true)) return std::nullopt;
  return Stop{reason, stop_resumable_.load()};
}

std::vector<ConsoleMessage> ControlRequests::take_messages() {
  MutexLock lock(mutex_);
  return std::exchange(messages_, {});
}

std::vector<Watchdog::Finding> ControlRequests::take_findings() {
  MutexLock lock(mutex_);
  return std::exchange(findings_, {});
}

bool ControlRequests::settle_wanted() const {
  MutexLock lock(mutex_);
  return settle_wanted_;
}

void ControlRequests::settled() {
  MutexLock lock(mutex_);
  settle_wanted_ = false;
  settled_.notify_all();
}

}  // namespace footplate
