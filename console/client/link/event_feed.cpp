#include "console/client/link/event_feed.h"

#include <utility>

#include "console/client/render/event_text.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenMetrics = 1s;
constexpr auto kSecond = 1s;

/// Whether it is what `session` did itself: an order, or its own coming and going.
bool is_of(const EventData& data, const std::string& session) {
  if (const auto* report = std::get_if<OrderReport>(&data))
    return (report->order ? report->order->session : "") == session;
  const auto* change = std::get_if<ClientChange>(&data);
  return change != nullptr && change->session == session;
}

}  // namespace

void EventFeed::push(const Event& event, Clock::time_point now) {
  left_out_ += event.lost;
  if (is_of(event.data, session_)) return;
  const bool is_metric = topic_of(event.data) == Topic::metrics;
  if (is_metric && !metrics_on_) return;
  const auto text = event_text(event.data);
  if (!text) return;
  if (is_metric)
    metric_ = *text;
  else
    add_line(*text, now);
}

void EventFeed::push(const UnknownEvent& event, Clock::time_point now) {
  left_out_ += event.lost;
  if (!event.text.empty()) add_line(event.topic + ": " + event.text, now);
}

void EventFeed::add_line(const std::string& text, Clock::time_point now) {
  if (now - second_ >= kSecond) {
    second_ = now;
    shown_ = 0;
  }
  if (++shown_ <= kLinesASecond)
    lines_ += text + "\n";
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
