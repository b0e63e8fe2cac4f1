#include <spdlog/spdlog.h>

#include "console/host/console.h"
#include "console/host/metrics_tail.h"
#include "protocol/iso_time.h"
#include "protocol/order.h"

// What rank 0 says (docs/protocol.md, "Rank 0 and the console").

namespace footplate::host {

void Console::rank_message(const Json& message) {
  const std::string type = message.value("type", "");
  if (type == "hello") return begin(message);
  if (!view_.known()) return spdlog::warn("rank 0 sent '{}' before its hello", type);
  const Json none = Json::object();
  if (type == "status") {
    view_.status(message.value("status", none), now_);
    automation_.status(message.value("status", none));
  } else if (type == "comm_report") {
    view_.comm_report(message.value("report", none), now_);
  } else if (type == "stacks") {
    stacks(message.value("report", none));
  } else if (type == "settings") {
    view_.settings(message.value("settings", none));
    for (auto& client : clients_)
      if (client->lua) client->lua->send(message);
    automation_.settings(message);
  } else if (type == "order") {
    order_report(message);
  } else if (type == "call") {
    book_.call_report(message);
    event("call", message);
  } else if (type == "event") {
    const std::string topic = message.value("topic", "");
    const Json data = message.value("data", none);
    if (topic == "metrics") view_.metrics(data);
    if (topic == "rank" && data.value("state", "") == "lost" && journal_)
      journal_->note(data.value("text", ""));
    if (topic == "metrics" || topic == "eval") view_.reached(data.value("step", std::int64_t{0}));
    ring_.push(topic, message.value("time", Json()), data);
    const bool log = topic == "metrics" && data.contains("train/loss");
    happened(log ? "log" : topic, with_metrics(topic, data));
    automation_.event(topic, data, message.value("hold", std::uint64_t{0}));
  } else if (type == "end") {
    view_.ended(message.value("result", Json()));
    happened("stop", message.value("result", Json()));
    event("run", {{"state", "ended"}, {"result", message.value("result", Json())}});
  }
}

/// As a rule's function gets it: logged metrics and evaluations with all that was measured last.
Json Console::with_metrics(const std::string& topic, const Json& data) const {
  if (topic != "metrics" && topic != "eval") return data;
  Json all = view_.metrics();
  all.update(data);
  return all;
}

void Console::stacks(const Json& report) {
  const Json rank = report.value("rank", Json());
  const auto asked = stacks_.find(rank.is_null() ? kAllRanks : rank.get<int>());
  if (asked == stacks_.end()) return;
  asked->second->report = report;
  stacks_.erase(asked);
}

void Console::begin(const Json& hello) {
  if (auto understood = view_.hello(hello, now_); !understood) {
    spdlog::error("{}", understood.error().message);
    exit_code_ = 1;
    running_ = false;
    return;
  }
  auto journal = Journal::open(options_.run_directory / "journal.lua", view_.run());
  if (journal)
    journal_.emplace(*std::move(journal));
  else
    spdlog::error("no journal: {}", journal.error().message);
  // What an earlier console of this run heard, and perhaps didn't write down before it ended.
  for (const Json& report : hello.value("reports", Json::array())) record(report);
  for (const Json& report : hello.value("status", Json::object()).value("orders", Json::array()))
    record(report);
  view_.metrics(latest_metrics(options_.run_directory / "metrics.jsonl"));
  automation_.begin(view_.run(), hello.value("status", Json::object()), book_.list());
  for (const Json& event : hello.value("events", Json::array())) rank_message(event);
  listen();
}

void Console::listen() {
  listener_.reset();
  auto path = Listener::path_for(view_.run());
  auto listener = path ? Listener::open(*path) : tl::unexpected(path.error());
  if (listener)
    listener_.emplace(*std::move(listener));
  else
    spdlog::error("no socket, tried again every second: {}", listener.error().message);
}

const OrderBook::Entry& Console::record(const Json& report) {
  const OrderBook::Entry& entry = book_.report(report);
  if (report.value("state", "") == "applied" && journal_ && !journal_->append(entry.report))
    event("warn", {{"text", "the journal can't be written; its entries are kept in memory and tried again"}});
  return entry;
}

void Console::order_report(const Json& report) {
  const OrderBook::Entry& entry = record(report);
  if (report.value("state", "") == "applied") view_.ordered(entry.report);
  if (report.value("state", "") == "committed") warn_if_late(entry.report);
  automation_.order_report(entry.report);
  if (report.value("state", "") == "applied") happened("order", Automation::order_event(entry.report));
  if (report.value("state", "") == "waiting") waits_.note(entry.id, entry.ref, report);
  event("order", entry.report);
}

/// An order for a step that is over applies at the next one, which whoever gave it may not have meant.
void Console::warn_if_late(const Json& report) {
  const Json order = report.value("order", Json::object());
  const auto wanted = order.value("at_step", Json());
  const auto step = report.value("step", std::int64_t{0});
  if (!wanted.is_number_integer() || wanted.get<std::int64_t>() >= step) return;
  to_rank({{"type", "publish"},
           {"topic", "warn"},
           {"data",
            {{"kind", "late"},
             {"order", report.value("id", Json())},
             {"text", "order " + report.value("id", Json()).dump() + " (" +
                          given_by(order.value("user", ""), order.value("session", "")) + ") was for step " +
                          wanted.dump() + ", which was over: it applies at step " + std::to_string(step)}}}});
}

void Console::event(const std::string& topic, const Json& data) {
  ring_.push(topic, iso_time(std::chrono::system_clock::now()), data);
}

}  // namespace footplate::host
