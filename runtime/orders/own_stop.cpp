#include "runtime/orders/own_stop.h"

#include <fmt/format.h>

#include "protocol/own_session.h"
#include "runtime/schema/actions.h"

namespace footplate {

bool OwnStop::request(const std::string& reason, bool resumable, bool save, Clock::time_point now) {
  if (stop_) return false;
  stop_ = Stop{reason, resumable, save, 0, now};
  return true;
}

OwnStop::Clock::time_point OwnStop::next_try() const {
  return stop_ && stop_->id == 0 ? stop_->again : Clock::time_point::max();
}

Order OwnStop::order(std::uint64_t id) {
  Order order;
  order.id = stop_->id = id;
  order.session = kOwnSession;
  order.source = fmt::format("-- {}", stop_->reason);
  order.calls = {
      {kStop, {{"save", stop_->save}, {"resumable", stop_->resumable}, {"reason", stop_->reason}}}};
  return order;
}

void OwnStop::aborted(std::uint64_t id, Clock::time_point again) {
  if (!stop_ || stop_->id != id) return;
  stop_->id = 0;
  stop_->again = again;
}

}  // namespace footplate
