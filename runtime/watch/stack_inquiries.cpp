#include "runtime/watch/stack_inquiries.h"

#include <algorithm>
#include <utility>

#include "runtime/stacks/thread_stacks.h"
#include "runtime/watch/messages.h"

namespace footplate {
namespace {

/// Of a report as text, divided among its ranks: it is one line to the console (kMaxFrameBytes).
constexpr std::size_t kMostBytes = kMaxFrameBytes / 4 * 3;

}  // namespace

void StackInquiries::ask(int rank, Clock::time_point now) {
  if (open_.contains(rank)) return;
  Open open;
  open.until = now + parts_.times.inquiry;
  for (int one = 0; one < parts_.world_size; ++one)
    if (rank == kAll || rank == one) open.awaited.insert(one);
  for (const int one : open.awaited)
    if (owing_.insert(one).second) parts_.send(one, {{"t", message::kInquire}, {"what", message::kStacks}});
  open_.emplace(rank, std::move(open));
  report_finished(now);
}

void StackInquiries::handle(int source, const Json& message, Clock::time_point now) {
  if (message.at("t") != message::kStacks) return;
  owing_.erase(source);
  for (auto& [asked, open] : open_)
    if (open.awaited.erase(source) > 0) open.threads[source] = message.at("threads");
  report_finished(now);
}

void StackInquiries::tick(Clock::time_point now) {
  report_finished(now);
}

void StackInquiries::report_finished(Clock::time_point now) {
  for (auto it = open_.begin(); it != open_.end();) {
    const bool finished = it->second.awaited.empty() || now >= it->second.until;
    if (finished) report(it->first, it->second, now);
    it = finished ? open_.erase(it) : std::next(it);
  }
}

void StackInquiries::report(int asked, const Open& open, Clock::time_point now) const {
  std::map<int, Json> ranks;
  for (const auto& [rank, threads] : open.threads) {
    ranks[rank] = {{"rank", rank}, {"threads", threads}};
    trim_stacks(ranks[rank]["threads"], kMostBytes / (open.threads.size() + open.awaited.size()));
  }
  for (const int rank : open.awaited) ranks[rank] = silent(rank, now);
  Json list = Json::array();
  for (auto& [rank, found] : ranks) list.push_back(std::move(found));
  parts_.report(message::kStacks,
                {{"rank", asked == kAll ? Json() : Json(asked)}, {"ranks", std::move(list)}});
}

Json StackInquiries::silent(int rank, Clock::time_point now) const {
  const std::string where = parts_.status.whom({rank}, now);  // "rank 1: step 812, …"
  return {{"rank", rank},
          {"threads", Json::array()},
          {"silent_s", parts_.status.silent_s(rank, now)},
          {"text", where.substr(where.find(": ") + 2)}};
}

StackInquiries::Clock::time_point StackInquiries::next_tick() const {
  auto next = Clock::time_point::max();
  for (const auto& [asked, open] : open_) next = std::min(next, open.until);
  return next;
}

}  // namespace footplate
