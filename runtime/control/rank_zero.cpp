#include "runtime/control/rank_zero.h"

#include <algorithm>
#include <utility>

#include "runtime/watch/messages.h"

namespace footplate {

RankZero::RankZero(Parts parts, std::uint64_t first_order_id)
    : parts_(parts),
      status_(parts.options.channel->world_size(), parts.options.times, Clock::now()),
      coordinator_({parts.options.schema, status_, parts.options.channel->world_size(),
                    [this](int to, const Json& message) { parts_.options.channel->send(to, message); },
                    [this](const std::string& topic, Json data) {
                      if (topic == "warn" && data.value("kind", "") == "state_hash") repair_.found(data);
                      report(topic, std::move(data));
                      if (topic == "rank") console_.renew_status();  // now, not with the next heartbeat
                    },
                    parts.options.times, first_order_id}),
      console_({parts.options, parts.gate, parts.participant, status_, coordinator_, parts.board,
                [this](const Json& line) { handle_line(line); },
                [this](Json data) { report("warn", std::move(data)); }}),
      stuck_({status_, *parts.options.channel, [this](const Json& message) { send_all(message); },
              [this](const std::string& topic, Json data) { report(topic, std::move(data)); },
              parts.options.before_exit}),
      repair_({status_, coordinator_, *parts.options.channel}),
      replacement_({parts.options.world, *parts.options.channel, parts.gate, coordinator_, parts.numbers,
                    parts.options.run.started,
                    [this](const std::string& topic, Json data) { report(topic, std::move(data)); }}) {
  const Settings settings = parts_.gate.settings();
  follow_changed(settings.to_json());
  watch_.emplace(watch_parts(), settings);
  follow(settings);
  console_.renew_status();
  console_.start();
}

WorldWatch::Parts RankZero::watch_parts() {
  const ControlOptions& options = parts_.options;
  return {options.schema,
          status_,
          *options.channel,
          options.ledger,
          options.times,
          options.first_order_id,
          options.world != nullptr ? &timeouts_so_far_ : nullptr,
          [this](Order order) { return coordinator_.submit_own(std::move(order), Clock::now()); },
          [this](const std::string& topic, Json data) { report(topic, std::move(data)); },
          [this](const Json& message) { send_all(message); }};
}

void RankZero::send_all(const Json& message) {
  MessageChannel& channel = *parts_.options.channel;
  for (int rank = 0; rank < channel.world_size(); ++rank) channel.send(rank, message);
}

void RankZero::follow(const Settings& settings) {
  stuck_.follow(settings);
  repair_.follow(settings);
  replacement_.follow(settings);
  watch_->follow(settings);
}

void RankZero::follow_changed(const Json& changed) {
  if (watch_) watch_->follow_changed(changed);
  if (changed.contains("train.steps")) console_.set_steps(changed["train.steps"]["value"]);
  if (changed.contains("run.time_limit"))
    time_limit_ = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(changed["run.time_limit"]["value"].get<double>()));
}

void RankZero::report(const std::string& topic, Json data, WallTime time, std::uint64_t hold) {
  if (topic == "settings") {
    follow_changed(data);
  } else if (topic != "comm_report" && topic != "stacks") {
    repair_.note(topic, data);
    replacement_.note(topic, data);
    if (parts_.options.observer) parts_.options.observer(topic, data);
  }
  console_.tell(topic, std::move(data), time, hold);
}

void RankZero::handle(int source, const Json& message, Clock::time_point now) {
  coordinator_.handle(source, message, now);
  watch_->handle(source, message, now);
}

void RankZero::handle_line(const Json& line) {
  const std::string type = line.value("type", "");
  const auto now = Clock::now();
  if (type == "order") coordinator_.submit(line.value("ref", Json()), line.value("order", Json()), now);
  if (type == "withdraw") coordinator_.withdraw(line, now);
  if (type == "ask") console_.ask(now);
  if (type == "comm_report") watch_->ask_patterns(now);
  if (type == "drop") stuck_.drop(line.value("rank", 0), line.value("user", ""), now);
  if (type == "stacks") watch_->ask_stacks(line.value("rank", StackInquiries::kAll), now);
  if (type == "follow") console_.follow(line.value("on", false));
  if (type == "publish") publish(line);
  if (type == "sync") parts_.gate.set_sync(line.value("topics", Json::object()));
  if (type == "release") parts_.gate.release(line.value("hold", std::uint64_t{0}));
  if (type == "cancel") cancel(line);
}

void RankZero::cancel(const Json& line) {
  if (!line.value("evaluation", false))
    coordinator_.cancel(line.value("order", std::uint64_t{0}), line.value("call", std::size_t{0}));
  else if (const auto step = parts_.options.progress->evaluation_under_way())
    coordinator_.cancel_evaluation(*step);
}

void RankZero::publish(const Json& line) {
  const std::string topic = line.value("topic", "");
  if (topic == "client" || topic == "job" || topic == "rule" || topic == "warn")
    report(topic, line.value("data", Json::object()));
}

CollectiveTimeouts::Due RankZero::tick(Clock::time_point now) {
  watch_->tick_stacks(now);
  if (time_limit_.count() > 0 && now >= parts_.options.process_start + time_limit_)
    coordinator_.stop("time limit", /*resumable=*/true, now);
  coordinator_.tick(now);
  stuck_.tick(now);
  replacement_.tick(now);
  repair_.tick(now);
  watch_->tick(now);
  while (!proposed_.empty() && coordinator_.submit_own(proposed_.front(), now) != 0) proposed_.pop_front();
  return watch_->tick_timeouts(now);
}

void RankZero::tick_recovery(Clock::time_point now) {
  watch_->tick_stacks(now);
  coordinator_.tick(now);
  watch_recovery(now);
}

void RankZero::watch_recovery(Clock::time_point now) {
  if (!recovery_) return;
  const std::vector<int> awaited = recovery_->awaited();
  if (awaited.empty() || now - standing_since_ < parts_.options.times.missing) return;
  const std::string text = "recovery waits for " + status_.whom(awaited, now);
  status_.note("recovery", text);
  if (!std::exchange(recovery_told_, true))
    report("warn", {{"kind", "recovery"}, {"ranks", awaited}, {"text", text}});
  stuck_.tick_recovery(awaited, now - standing_since_, now);
}

RankZero::Clock::time_point RankZero::next_tick() const {
  return std::min({coordinator_.next_tick(), watch_->next_tick(), console_.next_pump()});
}

bool RankZero::awaiting() const {
  return coordinator_.awaiting_outcome() || watch_->awaiting();
}

void RankZero::change_world(const Membership& before, const Membership& after, Clock::time_point now) {
  status_.world_changed(numbers_before(before, after), now);
  watch_.emplace(watch_parts(), parts_.gate.settings());
}

void RankZero::await_standing(const Membership& members) {
  recovery_.emplace(members.world_size(), members.generation);
  standing_since_ = Clock::now();
  recovery_told_ = false;
}

std::optional<Json> RankZero::add_standing(int source, const Json& message) {
  if (!recovery_) return std::nullopt;
  recovery_->add(source, message);
  auto verdict = recovery_->verdict();
  if (verdict) recovery_.reset();
  return verdict;
}

void RankZero::go_on(const Json& verdict, const RecoveryStory& story, Clock::time_point now) {
  const Membership& members = parts_.options.world->members();
  if (first_unrecorded_) inherit_orders(*std::exchange(first_unrecorded_, std::nullopt));
  coordinator_.continue_from(verdict.at("ticket"), verdict.at("order"));
  coordinator_.go_on(members.world_size(), verdict.at("commits"), now);
  status_.note("recovery", "");
  report("rank", recovery_report(story, members, verdict, now));
  console_.renew_status();
}

void RankZero::inherit_orders(std::uint64_t first_unrecorded) {
  for (const Committed& committed : parts_.gate.forecast().pending) coordinator_.inherit(committed);
  for (const Committed& committed : parts_.participant.committed())
    if (committed.order.id >= first_unrecorded && !parts_.gate.is_pending(committed.order.id))
      coordinator_.inherit(committed);
}

}  // namespace footplate
