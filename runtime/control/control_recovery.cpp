// What follows when a rank is lost, and what makes a stuck one a lost one.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/deadline_timer.h"
#include "runtime/control/control_impl.h"
#include "runtime/watch/messages.h"

namespace footplate {
namespace {

constexpr auto kOnLossStop = "a rank was lost, and comm.on_loss is \"stop\"";

/// By rank of now.
std::vector<int> numbers_before(const Membership& before, const Membership& after) {
  std::vector<int> numbers;
  for (const int origin : after.origins) {
    const auto found = std::find(before.origins.begin(), before.origins.end(), origin);
    numbers.push_back(found == before.origins.end() ? -1 : static_cast<int>(found - before.origins.begin()));
  }
  return numbers;
}

/// By their numbers before.
std::vector<int> lost_between(const Membership& before, const Membership& after) {
  std::vector<int> lost;
  for (int rank = 0; rank < before.world_size(); ++rank) {
    const int origin = before.origins[static_cast<std::size_t>(rank)];
    if (std::find(after.origins.begin(), after.origins.end(), origin) == after.origins.end())
      lost.push_back(rank);
  }
  return lost;
}

}  // namespace

void Control::Impl::recover(Clock::time_point now) {
  rebuild_due_ = false;
  if (joining_) return give_up("a rank was lost before this one was level");
  if (ends_by_remedy_) return give_up(remedy_);
  if (on_loss_ == "stop" && remedy_.empty()) return give_up(kOnLossStop);
  // What has been said before counts (a commit that this rank has sent itself, an order applied here), and
  // is over with this world: no message to itself may reach the next one.
  gate_.hold_for_recovery();
  handle_messages(now);
  handle_gate();
  handle_messages(now);
  if (quit_) return;
  if (coordinator_) coordinator_->suspend();
  const Membership before = options_.world->members();
  if (!recovering_) {
    recovering_since_ = now;
    whole_world_ = before;
  }
  recovering_ = true;
  told_standing_ = admission_due_ = false;
  admission_ = 0;
  if (auto rebuilt = in_time([this] { return options_.world->rebuild(); }); !rebuilt)
    return give_up("recovery failed: " + rebuilt.error().message);
  if (on_loss_ == "stop" && !lost_between(before, options_.world->members()).empty())
    return give_up(kOnLossStop);
  standing_since_ = Clock::now();
  recovery_told_ = false;
  world_changed(before, now);
}

void Control::Impl::world_changed(const Membership& before, Clock::time_point now) {
  const Membership& after = options_.world->members();
  next_number_ = std::max(next_number_, *std::max_element(after.origins.begin(), after.origins.end()) + 1);
  const bool leads = after.rank == 0 && !coordinator_;
  const std::uint64_t first_order_id = options_.on_world ? options_.on_world(after, leads) : 0;
  if (after.rank != 0) return;
  if (leads) {
    start_rank_zero(std::max(options_.first_order_id, first_order_id));
    coordinator_->suspend();
    first_unrecorded_ = first_order_id;
  } else {
    run_status_->world_changed(numbers_before(before, after), now);
    watch_collectives();
  }
  recovery_.emplace(after.world_size(), after.generation);
}

Result<void> Control::Impl::in_time(const std::function<Result<void>()>& change) {
  const DeadlineTimer fuse(options_.times.rebuild, [this] {
    if (options_.give_up)
      options_.give_up("recovery failed: the ranks that are left didn't find together in time");
  });
  return change();
}

void Control::Impl::give_up(const std::string& why) {
  options_.channel->wake_peers();  // they notice the loss now, and not with their next heartbeat
  if (options_.give_up) options_.give_up(why);
  gate_.give_up(why);
  quit_ = true;
}

void Control::Impl::enforce_hard_limit(Clock::time_point now) {
  if (hard_limit_.count() <= 0) return;
  const auto stuck = run_status_->stuck(hard_limit_, now);
  if (!stuck || !killed_.insert(stuck->pid).second) return;
  kill(*stuck, fmt::format("past comm.hard_limit_s ({:.3g} s)", hard_limit_.count()));
}

void Control::Impl::kill(const RunStatus::Stuck& stuck, const std::string& why) {
  const std::string text = fmt::format("killed {}: {}", why, stuck.text);
  report("rank", {{"rank", stuck.rank}, {"state", "killed"}, {"text", text}},
         std::chrono::system_clock::now());
  if (stuck.rank == options_.channel->rank() && options_.before_exit) options_.before_exit();
  send_all({{"t", message::kDie}, {"rank", stuck.rank}, {"pid", stuck.pid}, {"host", stuck.host}});
}

void Control::Impl::tick_recovery() {
  if (told_standing_) return;
  const auto standing = gate_.recovery_state();
  if (!standing) return;
  told_standing_ = true;
  handle_gate();  // what was applied on the way here is told first
  participant_->report_recovery_state(*standing, options_.world->members().generation);
}

void Control::Impl::on_standing(int source, const Json& message, Clock::time_point now) {
  if (!recovery_) return;
  recovery_->add(source, message);
  const auto verdict = recovery_->verdict();
  if (!verdict) return;
  recovery_.reset();
  for (int rank = 1; rank < options_.channel->world_size(); ++rank) options_.channel->send(rank, *verdict);
  on_rejoin(*verdict);
  if (!recovering_) go_on(*verdict, now);
}

void Control::Impl::go_on(const Json& verdict, Clock::time_point now) {
  if (first_unrecorded_) inherit_orders(*std::exchange(first_unrecorded_, std::nullopt));
  coordinator_->continue_from(verdict.at("ticket"), verdict.at("order"));
  coordinator_->go_on(options_.channel->world_size(), verdict.at("commits"), now);
  run_status_->note("recovery", "");
  const auto took = std::chrono::duration_cast<milliseconds>(now - recovering_since_).count();
  const int left = options_.channel->world_size();
  const Membership& members = options_.world->members();
  const std::vector<int> lost = lost_between(whole_world_, members);
  const std::vector<int> joined = lost_between(members, whole_world_);
  const std::int64_t step = verdict.at("step");
  std::string text;
  if (lost.empty() && joined.empty())  // a collective hung, or somebody was to join and didn't
    text =
        fmt::format("communicators were rebuilt at step {}{}; training goes on with {} rank{} ({} ms)", step,
                    remedied_.empty() ? "" : " (" + remedied_ + ")", left, left == 1 ? "" : "s", took);
  else if (lost.empty())
    text = fmt::format("rank {} joined at step {}; training goes on with {} ranks ({} ms)",
                       fmt::join(joined, ", "), step, left, took);
  else
    text = fmt::format("rank{} {} of {} lost at step {}; training goes on with {} rank{} ({} ms)",
                       lost.size() == 1 ? "" : "s", fmt::join(lost, ", "), whole_world_.world_size(), step,
                       left, left == 1 ? "" : "s", took);
  report("rank",
         {{"state", !lost.empty()    ? "lost"
                    : joined.empty() ? "rebuilt"
                                     : "joined"},
          {"ranks", lost.empty() ? joined : lost},
          {"world_size", left},
          {"step", step},
          {"level", !verdict.at("behind").empty()},
          {"ms", took},
          {"text", text}},
         std::chrono::system_clock::now());
  renew_status();
}

void Control::Impl::inherit_orders(std::uint64_t first_unrecorded) {
  for (const Committed& committed : gate_.forecast().pending) coordinator_->inherit(committed);
  for (const Committed& committed : participant_->committed())
    if (committed.order.id >= first_unrecorded && !gate_.is_pending(committed.order.id))
      coordinator_->inherit(committed);
}

void Control::Impl::on_rejoin(const Json& verdict) {
  if (!recovering_ || verdict.at("generation") != options_.world->members().generation) return;
  if (verdict.contains("impossible"))
    return give_up("recovery failed: " + verdict["impossible"].get<std::string>());
  recovering_ = false;
  remedied_ = std::exchange(remedy_, "");
  if (std::exchange(joining_, false) && options_.on_world)
    options_.on_world(options_.world->members(), /*leads=*/false);
  stop_told_ = false;  // rank 0 may be another
  participant_->rejoin(verdict, options_.world->members().local_ranks);
}

void Control::Impl::drop(int rank, const std::string& user, Clock::time_point now) {
  if (rank <= 0 || rank >= options_.channel->world_size()) return;
  kill(run_status_->who(rank, now), "by comm.drop() of " + user);
}

void Control::Impl::on_difference(const Json& differing, Clock::time_point now) {
  const std::int64_t step = differing.at("step");
  const auto odd = differing.at("ranks").get<std::vector<int>>();
  if (on_mismatch_ == "stop")
    return coordinator_->stop(differing.at("text"), /*resumable=*/true, now, /*save=*/false);
  if (on_mismatch_ != "repair" || repair_ != 0 || step < repaired_before_) return;
  int source = 0;
  while (std::find(odd.begin(), odd.end(), source) != odd.end()) ++source;
  if (source >= options_.channel->world_size()) return;  // no majority: nobody knows which side is right
  Order order;
  order.source = fmt::format("-- guard.on_mismatch: {}", differing.at("text").get<std::string>());
  order.calls = {{"guard.repair", {{"source", source}}}};
  repair_ = coordinator_->submit_own(std::move(order), now);
}

void Control::Impl::note_repair(const std::string& topic, const Json& call) {
  const std::string state = call.value("state", "");
  if (topic == "order" && (state == "refused" || state == "aborted" || state == "withdrawn")) repair_ = 0;
  if (topic != "call" || state == "running") return;
  repair_ = 0;
  if (state != "done") return;
  repaired_before_ = call.at("result").value("step", std::int64_t{0});
  run_status_->note("state_hash", "");
}

}  // namespace footplate
