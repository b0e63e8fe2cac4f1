#include "runtime/control/world_watch.h"

#include <algorithm>
#include <map>
#include <utility>

#include "protocol/overloaded.h"

namespace footplate {
namespace {

std::optional<CollectiveTimeouts> timeouts_of(const WorldWatch::Parts& parts) {
  if (parts.timeouts == nullptr) return std::nullopt;
  return CollectiveTimeouts(
      {parts.status, parts.channel.world_size(), parts.send_all,
       [report = parts.report](Warning warning) { report(std::move(warning)); }, parts.times},
      *parts.timeouts);
}

}  // namespace

SettingsUpdate all_settings(const Settings& settings) {
  SettingsUpdate all;
  for (const auto& [name, setting] : settings.all())
    all.settings[name] = {to_json(setting.value), setting.source};
  return all;
}

WorldWatch::WorldWatch(const Parts& parts, const Settings& now)
    : status_(parts.status),
      report_(parts.report),
      rank_barrier_({parts.status, parts.channel.world_size(), parts.send_all}),
      advice_(parts.advice),
      timeouts_(timeouts_of(parts)),
      collectives_({parts.status, parts.ledger, parts.channel.world_size(),
                    [this](Clock::time_point when) {
                      inquiries_.ask(*find_rank_query(kLedgerQuery), std::nullopt, when);
                    },
                    [this](Warning warning) { report_(std::move(warning)); }, &advice_,
                    timeouts_ ? &*timeouts_ : nullptr,
                    [this](Clock::time_point when) {
                      inquiries_.ask(*find_rank_query(kTimeoutQuery), std::nullopt, when);
                    }}),
      inquiries_({parts.channel.world_size(),
                  [&channel = parts.channel](int to, const message::ToRanks& message) {
                    channel.send(to, encoded(message));
                  },
                  parts.send_all,
                  [this](const RankQuery& query, const RankAnswers& heard, Clock::time_point when) {
                    answered(query, heard, when);
                  },
                  parts.times}) {
  follow(now);
}

Result<void> WorldWatch::ask(const AskRanks& asked, Clock::time_point now) {
  const RankQuery* query = find_rank_query(asked.query);
  if (query == nullptr || query->merge == nullptr)
    return fail(ErrorKind::usage, "there is no question '" + excerpt(asked.query) + "' to the ranks");
  inquiries_.ask(*query, asked.rank, now);
  return {};
}

void WorldWatch::answered(const RankQuery& query, const RankAnswers& heard, Clock::time_point now) {
  if (query.merge != nullptr)
    return report_(
        RanksAnswer{std::string(query.name), heard.asked, query.merge(heard, status_, advice_, now)});
  if (query.name != kLedgerQuery) return;
  std::map<int, LedgerAnswer> ledgers;  // what can't be read counts as not answered
  for (const auto& [rank, answer] : heard.answers)
    if (LedgerAnswer ledger; read_json(answer, ledger)) ledgers.emplace(rank, std::move(ledger));
  collectives_.answered(std::move(ledgers), now);
}

void WorldWatch::follow(const Settings& settings) {
  if (timeouts_) timeouts_->follow(settings);
}

void WorldWatch::handle(int source, const message::ToRankZero& message, Clock::time_point now) {
  std::visit(Overloaded{[&](const message::Beat& beat) { collectives_.handle(source, beat, now); },
                        [&](const message::Arrived& arrived) { rank_barrier_.handle(source, arrived, now); },
                        [&](const message::Overdue& overdue) { collectives_.handle(source, overdue, now); },
                        [&](const message::Ready& ready) {
                          if (timeouts_) timeouts_->handle(source, ready);
                        },
                        [&](const message::Answer& answer) { inquiries_.handle(source, answer, now); },
                        [](const auto&) {}},
             message);
}

void WorldWatch::tick(Clock::time_point now) {
  rank_barrier_.tick(now);
  advice_.tick(now);
}

CollectiveTimeouts::Due WorldWatch::tick_timeouts(Clock::time_point now) {
  return timeouts_ ? timeouts_->tick(now) : CollectiveTimeouts::Due::nothing;
}

WorldWatch::Clock::time_point WorldWatch::next_tick() const {
  auto next = std::min({rank_barrier_.next_tick(), inquiries_.next_tick()});
  if (timeouts_) next = std::min(next, timeouts_->next_tick());
  return next;
}

bool WorldWatch::awaiting() const {
  return rank_barrier_.awaiting_ranks() || inquiries_.awaiting_answers() ||
         (timeouts_ && timeouts_->awaiting_ranks());
}

}  // namespace footplate
