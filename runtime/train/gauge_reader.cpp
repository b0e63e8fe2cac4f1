#include "runtime/train/gauge_reader.h"

#include <utility>

#include "protocol/mutex.h"
#include "runtime/base/clock.h"
#include "runtime/base/condition.h"

namespace footplate {
namespace {

/// An older reading says nothing of now: the driver is stuck.
constexpr std::chrono::seconds kOldAfter{10};
/// So long the end of the process waits for a reading that is under way.
constexpr std::chrono::seconds kPatience{1};

}  // namespace

struct GaugeReader::Shared {
  Mutex mutex;
  Condition changed;
  std::optional<GaugeReading> newest GUARDED_BY(mutex);
  SteadyClock::time_point good_until GUARDED_BY(mutex);
  std::string refusal GUARDED_BY(mutex);
  bool ends GUARDED_BY(mutex) = false;
  bool ended GUARDED_BY(mutex) = false;
};

GaugeReader::GaugeReader(Open open)
    : shared_(std::make_shared<Shared>()),
      thread_("gauges", [shared = shared_, open = std::move(open)] { serve(shared, open); }) {}

GaugeReader::~GaugeReader() {
  bool ended = false;
  {
    MutexLock lock(shared_->mutex);
    shared_->ends = true;
    shared_->changed.notify_all();
    ended = shared_->changed.wait_until(lock, SteadyClock::now() + kPatience,
                                        [this]() REQUIRES(shared_->mutex) { return shared_->ended; });
  }
  if (ended)
    thread_.join();
  else
    thread_.detach();  // all it touches is shared
}

void GaugeReader::serve(const std::shared_ptr<Shared>& shared, const Open& open) {
  {
    auto gauges = open();
    if (gauges && *gauges) read_on(shared, **gauges);
    const MutexLock lock(shared->mutex);
    if (!gauges) shared->refusal = gauges.error().message;
  }
  const MutexLock lock(shared->mutex);
  shared->ended = true;
  shared->changed.notify_all();
}

void GaugeReader::read_on(const std::shared_ptr<Shared>& shared, Gauges& gauges) {
  const auto pause = gauges.renewed_every();
  MutexLock lock(shared->mutex);
  while (!shared->ends) {
    lock.unlock();
    const GaugeReading now = gauges.read();
    lock.lock();
    shared->newest = now;
    const auto read_at = SteadyClock::now();
    shared->good_until = read_at + kOldAfter;
    shared->changed.wait_until(lock, read_at + pause,
                               [&shared]() REQUIRES(shared->mutex) { return shared->ends; });
  }
}

std::optional<GaugeReading> GaugeReader::newest() const {
  const MutexLock lock(shared_->mutex);
  return SteadyClock::now() < shared_->good_until ? shared_->newest : std::nullopt;
}

std::string GaugeReader::take_refusal() {
  const MutexLock lock(shared_->mutex);
  return std::exchange(shared_->refusal, "");
}

}  // namespace footplate
