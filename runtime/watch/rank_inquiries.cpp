#include "runtime/watch/rank_inquiries.h"

#include <algorithm>
#include <string>
#include <vector>

namespace footplate {

void RankInquiries::ask(const RankQuery& query, std::optional<int> rank, Clock::time_point now) {
  if (open_.contains({&query, rank})) return;
  Open open;
  open.heard.asked = rank;
  open.until = now + parts_.times.inquiry;
  for (int one = 0; one < parts_.world_size; ++one)
    if (!rank || *rank == one) open.heard.silent.insert(one);
  std::vector<int> to;
  for (const int one : open.heard.silent)
    if (owing_.insert({&query, one}).second) to.push_back(one);
  const message::Inquire question{std::string(query.name)};
  if (static_cast<int>(to.size()) == parts_.world_size)
    parts_.send_all(question);
  else
    for (const int one : to) parts_.send(one, question);
  open_.emplace(std::pair(&query, rank), std::move(open));
  tell_finished(now);
}

void RankInquiries::handle(int source, const message::Answer& answer, Clock::time_point now) {
  const RankQuery* query = find_rank_query(answer.what);
  owing_.erase({query, source});
  for (auto& [asked, open] : open_)
    if (asked.first == query && open.heard.silent.erase(source) > 0)
      open.heard.answers[source] = answer.answer;
  tell_finished(now);
}

/// What has been asked is forgotten first: whoever hears of the answers may ask the same again.
void RankInquiries::tell_finished(Clock::time_point now) {
  std::vector<std::pair<const RankQuery*, Open>> finished;
  for (auto it = open_.begin(); it != open_.end();) {
    const bool over = it->second.is_finished(now);
    if (over) finished.emplace_back(it->first.first, std::move(it->second));
    it = over ? open_.erase(it) : std::next(it);
  }
  for (auto& [query, open] : finished) parts_.answered(*query, std::move(open.heard), now);
}

RankInquiries::Clock::time_point RankInquiries::next_tick() const {
  auto next = Clock::time_point::max();
  for (const auto& [asked, open] : open_) next = std::min(next, open.until);
  return next;
}

}  // namespace footplate
