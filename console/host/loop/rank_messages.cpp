#include "console/host/loop/rank_messages.h"

#include <spdlog/spdlog.h>

#include "console/host/run/metrics_tail.h"
#include "protocol/order.h"

namespace footplate::host {

Result<void> RankMessages::hear(const Json& message) {
  const std::string type = message.value("type", "");
  if (type == "hello") return begin(message);
  if (!state_.view.known()) {
    spdlog::warn("rank 0 sent '{}' before its hello", type);
    return {};
  }
  const Json none = Json::object();
  if (type == "status") {
    state_.view.status(message.value("status", none), state_.now);
    automation_.status(message.value("status", none));
  } else if (type == "comm_report") {
    state_.view.comm_report(message.value("report", none), state_.now);
  } else if (type == "stacks") {
    stacks_.answer(message.value("report", none));
  } else if (type == "settings") {
    state_.view.settings(message.value("settings", none));
    sessions_.settings(message);
    automation_.settings(message);
  } else if (type == "order") {
    order_report(message);
  } else if (type == "call") {
    state_.book.call_report(message);
    state_.publish("call", message);
  } else if (type == "event") {
    event(message);
  } else if (type == "end") {
    state_.view.ended(message.value("result", Json()));
    state_.happened("stop", message.value("result", Json()));
    state_.publish("run", {{"state", "ended"}, {"result", message.value("result", Json())}});
  }
  return {};
}

void RankMessages::event(const Json& message) {
  const std::string topic = message.value("topic", "");
  const Json data = message.value("data", Json::object());
  if (topic == "metrics") state_.view.metrics(data);
  if (topic == "rank" && data.value("state", "") == "lost" && state_.journal)
    state_.journal->note(data.value("text", ""));
  if (topic == "metrics" || topic == "eval") state_.view.reached(data.value("step", std::int64_t{0}));
  state_.ring.push(topic, message.value("time", Json()), data);
  const bool log = topic == "metrics" && data.contains("train/loss");
  state_.happened(log ? "log" : topic, with_metrics(topic, data));
  automation_.event(topic, data, message.value("hold", std::uint64_t{0}));
}

/// As a rule's function gets it: logged metrics and evaluations with all that was measured last.
Json RankMessages::with_metrics(const std::string& topic, const Json& data) const {
  if (topic != "metrics" && topic != "eval") return data;
  Json all = state_.view.metrics();
  all.update(data);
  return all;
}

Result<void> RankMessages::begin(const Json& hello) {
  if (auto understood = state_.view.hello(hello, state_.now); !understood) return understood;
  auto journal = Journal::open(state_.options.run_directory / "journal.lua", state_.view.run());
  if (journal)
    state_.journal.emplace(*std::move(journal));
  else
    spdlog::error("no journal: {}", journal.error().message);
  // What an earlier console of this run heard, and perhaps didn't write down before it ended.
  for (const Json& report : hello.value("reports", Json::array())) record(report);
  for (const Json& report : hello.value("status", Json::object()).value("orders", Json::array()))
    record(report);
  state_.view.metrics(latest_metrics(state_.options.run_directory / "metrics.jsonl"));
  automation_.begin(state_.view.run(), hello.value("status", Json::object()), state_.book.list());
  for (const Json& event : hello.value("events", Json::array())) {
    if (auto heard = hear(event); !heard) return heard;
  }
  clients_.keep_listening();
  return {};
}

const OrderBook::Entry& RankMessages::record(const Json& report) {
  const OrderBook::Entry& entry = state_.book.report(report);
  if (report.value("state", "") == "applied" && state_.journal && !state_.journal->append(entry.report))
    state_.publish(
        "warn", {{"text", "the journal can't be written; its entries are kept in memory and tried again"}});
  return entry;
}

void RankMessages::order_report(const Json& report) {
  const OrderBook::Entry& entry = record(report);
  if (report.value("state", "") == "applied") state_.view.ordered(entry.report);
  if (report.value("state", "") == "committed") warn_if_late(entry.report);
  automation_.order_report(entry.report);
  if (report.value("state", "") == "applied") state_.happened("order", Automation::order_event(entry.report));
  if (report.value("state", "") == "waiting") state_.waits.note(entry.id, entry.ref, report);
  state_.publish("order", entry.report);
}

/// An order for a step that is over applies at the next one, which whoever gave it may not have meant.
void RankMessages::warn_if_late(const Json& report) {
  const Json order = report.value("order", Json::object());
  const auto wanted = order.value("at_step", Json());
  const auto step = report.value("step", std::int64_t{0});
  if (!wanted.is_number_integer() || wanted.get<std::int64_t>() >= step) return;
  state_.to_rank(
      {{"type", "publish"},
       {"topic", "warn"},
       {"data",
        {{"kind", "late"},
         {"order", report.value("id", Json())},
         {"text", "order " + report.value("id", Json()).dump() + " (" +
                      given_by(order.value("user", ""), order.value("session", "")) + ") was for step " +
                      wanted.dump() + ", which was over: it applies at step " + std::to_string(step)}}}});
}

}  // namespace footplate::host
