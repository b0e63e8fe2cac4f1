#include "fake_console.h"

#include <algorithm>

#include "console/lua/api/catalogue.h"
#include "protocol/store.h"
#include "test_schema.h"

namespace footplate::test {

FakeConsole::FakeConsole(SessionKind kind) {
  lua::Greeting greeting;
  greeting.kind = kind;
  greeting.schema = small_schema();
  greeting.settings = Settings::defaults(greeting.schema);
  greeting.run.name = "kjv-3";
  greeting.run.id = "a1b2";
  greeting.session = "s1";
  greeting.user = "ann";
  greeting.limits.chunk = std::chrono::milliseconds(300);
  session_ = std::make_unique<lua::Session>(std::move(greeting), *this, lua::open_names);
}

FakeConsole::~FakeConsole() = default;

lua::Outcome FakeConsole::run(const std::string& code) {
  talk.clear();
  out.clear();
  return session_->evaluate(code, "chunk", std::chrono::seconds(30));
}

std::string LuaChunks::text_of(const std::string& code) {
  const auto outcome = console.run(code);
  EXPECT_FALSE(outcome.error) << outcome.error->message;
  return outcome.text;
}

std::string LuaChunks::error_of(const std::string& code) {
  const auto outcome = console.run(code);
  EXPECT_TRUE(outcome.error) << code << " went through";
  return outcome.error ? outcome.error->message : "";
}

void FakeConsole::output(std::string_view text, OutputStream stream) {
  if (stream == OutputStream::progress)
    progress.emplace_back(text);
  else
    (stream == OutputStream::out ? out : talk) += text;
}

Json FakeConsole::take_order(const Json& json) {
  Order order = order_from_json(json).value();
  order.id = orders.size() + 1;
  order.user = "ann";
  order.session = "s1";
  orders.push_back(order);
  reports_.push_back({{"ref", std::to_string(order.id)},
                      {"id", order.id},
                      {"state", "accepted"},
                      {"order", to_json(order)}});
  return {{"ref", std::to_string(order.id)}};
}

void FakeConsole::apply(Order& order, Json& report) {
  Applied applied{order.id, order.at_step.value_or(12041), 8, 8, "digest", {}, renewed_s};
  SettingsUpdate changed;
  for (const Change& change : order.changes) {
    applied.moved.push_back({change.name, session_->settings().value(change.name), change.value});
    changed.settings[change.name] = {to_json(change.value), "order " + std::to_string(order.id) + " (ann)"};
    if (change.name == "train.steps") applied.moved.push_back({"optim.lr", 0.00031, 0.000640001});
  }
  session_->settings_changed(changed);
  for (const Call& call : order.calls)
    if (call.action == "run.store") static_cast<void>(apply_store(store, call.arguments));
  report["state"] = "applied";
  report["applied"] = to_json(applied);
  if (!disagreement.empty()) report["error"] = disagreement;
}

Json FakeConsole::wait_order(const Json& fields, const Note& note) {
  const std::size_t id = fields.contains("order") ? fields["order"].get<std::size_t>()
                                                  : std::stoul(fields["ref"].get<std::string>());
  Json& report = reports_.at(id - 1);
  const std::string until = fields["until"];
  if (until == "now" || report["state"] != "accepted") return report;
  for (const auto& text : waiting) {
    OrderReport report;
    report.state = OrderState::waiting;
    report.id = id;
    report.text = text;
    if (note) note(report);
  }
  if (!refuse_with.empty()) {
    report["state"] = "refused";
    report["error"] = refuse_with;
  } else if (never_agreed) {
    Json late = report;
    late["timed_out"] = true;
    if (silent.empty()) return late;
    late["silent"] = silent;
    late["state"] = "sent";
    late.erase("id");
    return late;
  } else if (until == "committed") {
    report["state"] = "committed";
    report["step"] = std::max(first_step, *orders[id - 1].at_step);
  } else {
    apply(orders[id - 1], report);
  }
  return report;
}

Json FakeConsole::wait_lines(const Json& fields) {
  if (!fields.contains("since")) return {{"next", 5}};
  Json lines = Json::array();
  for (int i = 0; i < 2; ++i) {
    lines.push_back(line(
        logged_ += static_cast<double>(std::get<std::int64_t>(session_->settings().value("log.every")))));
    lines.back()["step"] = static_cast<std::int64_t>(logged_);
  }
  status["step"] = static_cast<std::int64_t>(logged_);
  return {{"next", fields["since"].get<int>() + 2}, {"lines", lines}};
}

Result<Json> FakeConsole::ask(std::string_view op, Json fields, const Note& note,
                              std::optional<Time> /*left*/) {
  asked.emplace_back(op);
  if (op.starts_with("wait_") && interrupt_waits) {
    interrupt_waits = false;
    interrupted_ = true;
    return fail(ErrorKind::script, "interrupted");
  }
  if (op == "order") return take_order(fields["order"]);
  if (op == "wait_order") return wait_order(fields, note);
  if (op == "wait_call") {
    Json report = {{"order", fields["order"]},
                   {"call", fields["call"]},
                   {"action", "eval.now"},
                   {"state", "done"},
                   {"result", call_result}};
    if (!call_error.empty()) {
      report["state"] = "failed";
      report["error"] = call_error;
    }
    return report;
  }
  if (op == "wait_lines") return wait_lines(fields);
  if (op == "wait_step") return Json{{"step", fields["step"]}};
  if (op == "wait_seconds") return Json{{"step", 812}};
  if (op == "wait_event") return Json{{"step", 812}, {"event", {{"step", 812}, {"loss", 1.5}}}};
  if (op == "wait_rules") {
    Json numbers = Json::array();
    for (const Json& spec : fields["rules"]) {
      rules.push_back(spec);
      numbers.push_back(rules.size());
      rules.back()["rule"] = rules.size();
      rules.back()["state"] = "on";
    }
    return Json{{"numbers", numbers}};
  }
  if (op == "rules") return Json(rules);
  if (op == "rule_off") {
    rules.at(fields["rule"].get<std::size_t>() - 1)["state"] = "off";
    return Json::object();
  }
  if (op == "jobs") return Json::array();
  if (op == "store") return store;
  if (op == "pending") return pending;
  if (op == "settings") return computed;
  if (op == "status") return status;
  if (op == "wait_report")
    return Json{{"patterns",
                 {{{"rank", 0},
                   {"kind", "all_reduce"},
                   {"at_least", 1000},
                   {"count", 4},
                   {"bytes", 16000},
                   {"total_ms", 2.0},
                   {"longest_ms", 1.5},
                   {"overdue", 1}}}},
                {"proposals", {{{"text", "late at 3 steps. If that is normal here: comm.timeout_s = 3"}}}}};
  if (op == "wait_dump")
    return Json{{"ranks",
                 {{{"rank", 0}, {"path", "/runs/r/ledgers/rank-0-1.jsonl"}, {"operations", 812}},
                  {{"rank", 1}, {"error", "it doesn't answer: rank 1: step 5, forward, 3.3 s"}}}}};
  if (op == "wait_drop") {
    dropped.push_back(fields);
    return fields;
  }
  if (op == "wait_stacks") {
    stacks_asked.push_back(fields);
    return stacks;
  }
  if (op == "metrics") return metrics;
  if (op == "checkpoints")
    return Json::parse(R"([{"name": "main/step-00000600-good", "branch": "main", "step": 600, "tag": "good",
        "best": true, "loss": 1.895, "loss_step": 600, "created": "2026-11-24T07:31:00.000Z", "bytes": 10114728},
      {"name": "main/step-00000500", "branch": "main", "step": 500, "loss": 1.989, "loss_step": 400,
        "created": "2026-11-24T07:21:00.000Z", "bytes": 10114728}])");
  if (op == "journal") return Json("at(12041, { log = { every = 10 } })\n");
  if (op == "orders") {
    Json reports = others;
    for (const Json& report : reports_) reports.push_back(report);
    return reports;
  }
  if (op == "cancel") {
    cancelled.push_back(fields);
    return Json::object();
  }
  if (op == "withdraw" && !silent.empty()) return Json::object();
  if (op == "withdraw") {
    reports_.at(fields.contains("order") ? fields["order"].get<std::size_t>() - 1
                                         : std::stoul(fields["ref"].get<std::string>()) - 1)["state"] =
        "withdrawn";
    return Json::object();
  }
  return fail(ErrorKind::failed, "the fake knows no operation " + std::string(op));
}

}  // namespace footplate::test
