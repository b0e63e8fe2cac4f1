#include "console/host/run/run_view.h"

#include <array>
#include <cstdio>

#include "console/host/run/metrics_tail.h"
#include "protocol/order.h"
#include "protocol/store.h"

namespace footplate::host {
namespace {

void advance(Json& object, const char* field, double seconds) {
  if (const auto found = object.find(field); found != object.end() && found->is_number())
    *found = found->get<double>() + seconds;
}

std::string with_thousands(std::string digits) {
  for (std::size_t place = digits.size(); place > 3;) digits.insert(place -= 3, 1, ',');
  return digits;
}

std::string tenths(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", seconds);
  return text.data();
}

}  // namespace

std::string silence_note(const Json& rank, double silent_s) {
  std::string note = "rank " + rank.value("rank", Json(0)).dump() + " silent for " + tenths(silent_s) + " s";
  if (rank.contains("step")) note += ", last seen at step " + rank["step"].dump();
  if (const std::string phase = rank.value("phase", ""); !phase.empty()) note += " in " + phase;
  const Json collective = rank.value("collective", Json());
  if (collective.is_object() && collective.value("running", false))
    note += " (" + collective.value("kind", "collective") + " #" +
            collective.value("sequence", Json(0)).dump() + ", " +
            with_thousands(collective.value("elements", Json(0)).dump()) + " elements)";
  return note;
}

Result<void> RunView::hello(const Json& message, Clock::time_point now) {
  if (const int version = message.value("protocol", kProtocolVersion); version != kProtocolVersion)
    return fail(ErrorKind::failed, "rank 0 speaks protocol " + std::to_string(version) + ", this console " +
                                       std::to_string(kProtocolVersion) + ": they are of different builds");
  schema_json_ = message.value("schema", Json::object());
  auto schema = Schema::from_json(schema_json_);
  if (!schema) return tl::unexpected(schema.error());
  auto settings = Settings::from_json(message.value("settings", Json::object()), *schema);
  if (!settings) return tl::unexpected(settings.error());
  schema_ = *std::move(schema);
  settings_ = *std::move(settings);
  at_start_ = message.value("at_start", Json::object());
  run_ = message.value("run", Json::object());
  store_ = message.value("store", Json::object());
  status(message.value("status", Json::object()), now);
  return {};
}

void RunView::status(const Json& status, Clock::time_point now) {
  status_ = status.is_object() ? status : Json::object();
  status_time_ = now;
}

void RunView::comm_report(const Json& report, Clock::time_point now) {
  comm_report_ = report;
  comm_report_time_ = now;
}

void RunView::settings(const Json& changed) {
  for (const auto& [name, item] : changed.items()) {
    if (!item.is_object() || !item.contains("value")) continue;
    if (auto value = schema_->check(name, item["value"]))
      settings_.set(name, *std::move(value), item.value("source", ""));
  }
}

Json RunView::pending() const {
  Json pending = Json::array();
  for (const auto& [name, in_force] : at_start_.items()) {
    if (schema_->setting(name) == nullptr) continue;
    if (Json value = to_json(settings_.value(name)); value != in_force)
      pending.push_back({{"name", name},
                         {"value", std::move(value)},
                         {"at_start", in_force},
                         {"source", settings_.source(name)}});
  }
  return pending;
}

void RunView::metrics(const Json& latest) {
  merge_metrics(metrics_, latest);
}

void RunView::reached(std::int64_t step) {
  if (step > this->step()) status_["step"] = step;
}

void RunView::ordered(const Json& report) {
  const auto order = order_from_json(report.value("order", Json::object()));
  if (!order) return;
  for (const Call& call : order->calls)
    if (call.action == "run.store") static_cast<void>(apply_store(store_, call.arguments));
}

void RunView::ended(const Json& result) {
  result_ = result;
  status_["state"] = "ended";
}

std::int64_t RunView::step() const {
  return status_.value("step", std::int64_t{0});
}

std::string RunView::silence(Clock::time_point now) const {
  const double silent = std::chrono::duration<double>(now - heard_).count();
  if (result_ || silent <= silent_s_) return {};
  for (const Json& rank : status_.value("ranks", Json::array()))
    if (rank.is_object() && rank.value("rank", -1) == 0) return silence_note(rank, silent);
  return silence_note({{"rank", 0}}, silent);
}

Json RunView::status_at(Clock::time_point now) const {
  Json status = status_;
  const double age = std::chrono::duration<double>(now - status_time_).count();
  const double silent = std::chrono::duration<double>(now - heard_).count();
  if (result_) return status;
  Json notes = status.value("notes", Json::array());
  for (Json& rank : status["ranks"]) {
    if (!rank.is_object()) continue;
    advance(rank, "silent_s", age);
    advance(rank, "phase_s", age);
    if (rank.contains("collective") && rank["collective"].is_object())
      advance(rank["collective"], "age_s", age);
    if (rank.value("rank", -1) != 0 || silent <= silent_s_) continue;
    // Of the other ranks nothing new is known either, and nothing is held against them.
    rank["silent_s"] = silent;
    rank["stalled"] = true;
    notes.insert(notes.begin(), silence_note(rank, silent));
  }
  if (status["ranks"].is_null()) status["ranks"] = Json::array();
  if (status["ranks"].empty() && silent > silent_s_)
    notes.insert(notes.begin(), silence_note({{"rank", 0}}, silent));
  status["notes"] = std::move(notes);
  return status;
}

}  // namespace footplate::host
