#include "console/client/link/event_feed.h"

#include <utility>

#include "console/client/render/event_text.h"
#include "console/client/runs/run_record.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenMetrics = 1s;
constexpr auto kSecond = 1s;

}  // namespace

void EventFeed::count_lost(const Json& event) {
  left_out_ += integer_of(event, "lost", 0);
}

void EventFeed::push(const Json& event, Clock::time_point now) {
  count_lost(event);
  const std::string topic = text_of(event, "topic");
  const auto data = event.find("data");
  if (data == event.end() || !data->is_object()) return;
  const bool own = (topic == "order" && order_session(*data) == session_) ||
                   (topic == "client" && text_of(*data, "session") == session_);
  if (own || (topic == "metrics" && !metrics_on_)) return;
  const auto text = event_text(topic, *data);
  if (!text) return;
  if (topic == "metrics") {
    metric_ = *text;
    return;
  }
  if (now - second_ >= kSecond) {
    second_ = now;
    shown_ = 0;
  }
  if (++shown_ <= kLinesASecond)
    lines_ += *text + "\n";
  else
    ++left_out_;
}

std::string EventFeed::take(Clock::time_point now) {
  if (!metric_.empty() && now >= metric_due_) {
    lines_ += std::exchange(metric_, "") + "\n";
    metric_due_ = now + kBetweenMetrics;
  }
  if (left_out_ > 0 && now - second_ >= kSecond)
    lines_ +=
        "(" + std::to_string(std::exchange(left_out_, 0)) + " lines left out; footplate log has them)\n";
  return std::exchange(lines_, "");
}

std::optional<EventFeed::Clock::time_point> EventFeed::due() const {
  std::optional<Clock::time_point> next;
  if (!metric_.empty()) next = metric_due_;
  if (left_out_ > 0 && (!next || second_ + kSecond < *next)) next = second_ + kSecond;
  return next;
}

}  // namespace footplate
