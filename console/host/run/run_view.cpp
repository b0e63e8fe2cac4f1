#include "console/host/run/run_view.h"

#include <array>
#include <cstdio>

#include "console/host/run/metrics_tail.h"
#include "protocol/store.h"

namespace footplate::host {
namespace {

std::string with_thousands(std::string digits) {
  for (std::size_t place = digits.size(); place > 3;) digits.insert(place -= 3, 1, ',');
  return digits;
}

std::string tenths(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", seconds);
  return text.data();
}

/// Of rank 0 where no status has told of it.
std::string silence_text(double silent_s) {
  return "rank 0 silent for " + tenths(silent_s) + " s";
}

}  // namespace

std::string silence_note(const RankStatus& rank, double silent_s) {
  std::string note = "rank " + std::to_string(rank.rank) + " silent for " + tenths(silent_s) +
                     " s, last seen at step " + std::to_string(rank.step);
  if (!rank.phase.empty()) note += " in " + rank.phase;
  if (rank.collective && rank.collective->running)
    note += " (" + (rank.collective->kind.empty() ? "collective" : rank.collective->kind) + " #" +
            std::to_string(rank.collective->sequence) + ", " +
            with_thousands(std::to_string(rank.collective->elements)) + " elements)";
  return note;
}

Result<void> RunView::hello(const RankZeroHello& hello, Clock::time_point now) {
  if (hello.protocol != kProtocolVersion)
    return fail(ErrorKind::failed, "rank 0 speaks protocol " + std::to_string(hello.protocol) +
                                       ", this console " + std::to_string(kProtocolVersion) +
                                       ": they are of different builds");
  auto schema = Schema::from_json(hello.schema);
  if (!schema) return tl::unexpected(schema.error());
  auto settings = Settings::from_json(hello.settings, *schema);
  if (!settings) return tl::unexpected(settings.error());
  schema_json_ = hello.schema;
  schema_ = *std::move(schema);
  settings_ = *std::move(settings);
  at_start_ = hello.at_start;
  run_ = hello.run;
  store_ = hello.store;
  status(hello.status, now);
  return {};
}

void RunView::status(const RunStatus& status, Clock::time_point now) {
  status_ = status;
  status_time_ = now;
}

void RunView::settings(const SettingsUpdate& update) {
  for (const auto& [name, setting] : update.settings)
    if (auto value = schema_->check(name, setting.value))
      settings_.set(name, *std::move(value), setting.source);
}

std::vector<PendingSetting> RunView::pending() const {
  std::vector<PendingSetting> pending;
  for (const auto& [name, in_force] : at_start_.items()) {
    if (schema_->setting(name) == nullptr) continue;
    if (Json value = to_json(settings_.value(name)); value != in_force)
      pending.push_back({name, std::move(value), in_force, settings_.source(name)});
  }
  return pending;
}

void RunView::metrics(const LoggedMetrics& logged) {
  merge_metrics(metrics_, logged);
}

void RunView::reached(std::int64_t step) {
  if (step > status_.step) status_.step = step;
}

void RunView::ordered(const OrderReport& report) {
  if (!report.order) return;
  for (const Call& call : report.order->calls)
    if (call.action == "run.store") static_cast<void>(apply_store(store_, call.arguments));
}

void RunView::ended(const RunResult& result) {
  result_ = result;
  status_.state = RunState::ended;
}

int RunView::world_size() const {
  return status_.ranks.empty() ? run_.world_size : status_.world_size;  // before the first heartbeat
}

std::string RunView::silence(Clock::time_point now) const {
  const double silent = std::chrono::duration<double>(now - heard_).count();
  if (result_ || silent <= silent_s_) return {};
  for (const RankStatus& rank : status_.ranks)
    if (rank.rank == 0) return silence_note(rank, silent);
  return silence_text(silent);
}

RunStatus RunView::status_at(Clock::time_point now) const {
  RunStatus status = status_;
  const double age = std::chrono::duration<double>(now - status_time_).count();
  const double silent = std::chrono::duration<double>(now - heard_).count();
  if (result_) return status;
  for (RankStatus& rank : status.ranks) {
    rank.silent_s += age;
    rank.phase_s += age;
    if (rank.collective) rank.collective->age_s += age;
    if (rank.rank != 0 || silent <= silent_s_) continue;
    // Of the other ranks nothing new is known either, and nothing is held against them.
    rank.silent_s = silent;
    rank.stalled = true;
    status.notes.insert(status.notes.begin(), silence_note(rank, silent));
  }
  if (status.ranks.empty() && silent > silent_s_)
    status.notes.insert(status.notes.begin(), silence_text(silent));
  return status;
}

}  // namespace footplate::host
