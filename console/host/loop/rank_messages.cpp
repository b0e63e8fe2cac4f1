#include "console/host/loop/rank_messages.h"

#include <spdlog/spdlog.h>

#include "console/host/automation/script_events.h"
#include "console/host/run/metrics_tail.h"

namespace footplate::host {
namespace {

/// What run.wait knows it as; nothing: it is no event for scripts.
std::optional<AwaitedEvent> awaited_as(const EventData& data) {
  if (const auto* logged = std::get_if<LoggedMetrics>(&data))
    return logged->is_of_training() ? std::optional(AwaitedEvent::log) : std::nullopt;
  return from_word<AwaitedEvent>(to_string(topic_of(data)));
}

}  // namespace

Result<void> RankMessages::hear(const RankZeroMessage& message) {
  if (const auto* hello = std::get_if<RankZeroHello>(&message)) return begin(*hello);
  if (state_.view.known())
    std::visit([this](const auto& one) { on(one); }, message);
  else
    spdlog::warn("rank 0 sent a message before its hello");
  return {};
}

void RankMessages::on(const StatusUpdate& update) {
  state_.view.status(update.status, state_.now);
  automation_.status(update.status);
}

void RankMessages::on(const SettingsUpdate& update) {
  state_.view.settings(update);
  sessions_.settings(update);
  automation_.settings(update);
}

void RankMessages::on(const CallReport& report) {
  state_.book.call_report(report);
  state_.publish(report);
}

void RankMessages::on(const RunEnd& end) {
  state_.view.ended(end.result);
  state_.happened(AwaitedEvent::stop, to_json(end.result));
  RunChange change;
  change.state = RunState::ended;
  change.result = end.result;
  state_.publish(std::move(change));
}

void RankMessages::on(const Event& event) {
  if (const auto* logged = std::get_if<LoggedMetrics>(&event.data)) {
    state_.view.metrics(*logged);
    state_.view.settings(computed_settings(state_.view.schema(), *logged));
    state_.view.reached(logged->step());
  } else if (const auto* evaluation = std::get_if<EvaluationResult>(&event.data)) {
    state_.view.reached(evaluation->step);
  } else if (const auto* change = std::get_if<RankChange>(&event.data)) {
    if (change->state == RankChangeKind::lost && state_.journal) state_.journal->note(change->text);
  }
  state_.ring.push(event);
  if (const auto awaited = awaited_as(event.data))
    state_.happened(*awaited, event_for_scripts(event.data, state_.view.metrics()));
  automation_.event(event.data, event.hold);
}

Result<void> RankMessages::begin(const RankZeroHello& hello) {
  if (auto understood = state_.view.hello(hello, state_.now); !understood) return understood;
  auto journal = Journal::open(state_.options.run_directory / "journal.lua", state_.view.run());
  if (journal)
    state_.journal.emplace(*std::move(journal));
  else
    spdlog::error("no journal: {}", journal.error().message);
  // What an earlier console of this run heard, and perhaps didn't write down before it ended.
  for (const OrderReport& report : hello.reports) record(report);
  for (const OrderReport& report : hello.status.orders) record(report);
  for (const OrderReport* report : state_.book.list())
    if (report->order) clients_.number_after(*report->order);
  state_.view.metrics(latest_metrics(state_.options.run_directory / "metrics.jsonl"));
  automation_.begin(state_.view.run(), hello.status, state_.book.list());
  for (const Event& event : hello.events) on(event);
  clients_.keep_listening();
  return {};
}

const OrderBook::Entry& RankMessages::record(const OrderReport& report) {
  const OrderBook::Entry& entry = state_.book.report(report);
  if (report.state == OrderState::applied && state_.journal && !state_.journal->append(entry.report)) {
    Warning warning;
    warning.text = "the journal can't be written; its entries are kept in memory and tried again";
    state_.publish(std::move(warning));
  }
  return entry;
}

void RankMessages::on(const OrderReport& report) {
  const OrderBook::Entry& entry = record(report);
  const bool applied = report.state == OrderState::applied;
  if (applied) state_.view.ordered(entry.report);
  if (report.state == OrderState::committed) warn_if_late(entry.report);
  automation_.order_report(entry.report);
  if (applied) state_.happened(AwaitedEvent::order, order_event(entry.report));
  if (report.state == OrderState::waiting) state_.waits.note(entry.id, entry.ref, report);
  state_.publish(entry.report);
}

/// An order for a step that is over applies at the next one, which whoever gave it may not have meant.
void RankMessages::warn_if_late(const OrderReport& report) {
  if (!report.order || !report.order->at_step || *report.order->at_step >= report.step.value_or(0)) return;
  Warning warning;
  warning.kind = WarningKind::late;
  warning.order = report.id;
  warning.text = "order " + std::to_string(report.id) + " (" +
                 given_by(report.order->user, report.order->session) + ") was for step " +
                 std::to_string(*report.order->at_step) + ", which was over: it applies at step " +
                 std::to_string(report.step.value_or(0));
  state_.to_rank(PublishEvent{std::move(warning)});
}

}  // namespace footplate::host
