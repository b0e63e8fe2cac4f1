#include "protocol/event_line.h"

#include <cmath>

#include "protocol/order.h"
#include "protocol/value.h"
#include "protocol/words.h"

namespace footplate {
namespace {

std::string whole(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? rounded(std::trunc(*value), 15) : "?";
}

/// A line put together part by part; parts that are empty leave no trace.
class Line {
 public:
  explicit Line(std::string start) : text_(std::move(start)) {}

  Line& add(const std::string& part) {
    if (!part.empty()) text_ += " · " + part;
    return *this;
  }
  /// "2.5 s": a number and its unit; nothing where it is missing.
  Line& number(const std::optional<double>& value, const std::string& unit, double scale = 1) {
    return value ? add(rounded_or_nan(*value * scale) + " " + unit) : *this;
  }
  Line& labelled(const std::optional<double>& value, const std::string& label) {
    return value ? add(label + " " + rounded_or_nan(*value)) : *this;
  }
  Line& loss(const std::optional<double>& value, const std::string& label) {
    return value ? add(label + " " + loss_text(*value)) : *this;
  }
  /// What took no time, as far as one knows, leaves no trace.
  Line& seconds(double value) { return value > 0 ? number(value, "s") : *this; }
  std::string take() { return std::move(text_); }

 private:
  static std::string rounded_or_nan(double value) { return std::isnan(value) ? "nan" : rounded(value); }

  std::string text_;
};

/// ": no room on the disk", or nothing.
std::string because(const std::string& why) {
  return why.empty() ? "" : ": " + why;
}

std::string line_of(const LoggedMetrics& metrics, std::int64_t steps) {
  if (!metrics.is_of_training()) return {};  // evaluations have an event of their own
  const auto step = metrics.number("step");
  const auto step_ms = metrics.number("perf/step_ms");
  Line line("step " + whole(step) + (steps > 0 ? "/" + std::to_string(steps) : ""));
  line.loss(metrics.number("train/loss"), "loss").labelled(metrics.number("train/lr"), "lr");
  line.number(metrics.number("perf/tokens_per_s"), metrics.pace_unit());
  line.number(metrics.number("perf/mfu"), "% MFU", 100).number(step_ms, "ms/step");
  const double left_s = (static_cast<double>(steps) - step.value_or(NAN)) * step_ms.value_or(NAN) / 1e3;
  if (steps > 0 && left_s > 0) line.add("eta " + duration(left_s));
  return line.take();
}

std::string line_of(const EvaluationResult& result, std::int64_t /*steps*/) {
  const std::string at = "eval at step " + std::to_string(result.step);
  if (!result.loss) return at + " failed" + because(result.reason);
  Line line(at);
  line.loss(result.loss, result.on == EvaluatedOn::everything ? "loss of everything held out"
                         : result.on == EvaluatedOn::other
                             ? "loss of " + std::to_string(result.batches) + " batches"
                             : "loss");
  if (result.best && std::isfinite(*result.best)) line.loss(result.best, "best");  // none yet: infinity
  line.seconds(result.seconds);
  if (result.partial)
    line.add("partial, " + std::to_string(result.batches) + " of " +
             std::to_string(result.batches_wanted.value_or(0)) + " batches");
  if (result.retries > 0) line.add("retry " + std::to_string(result.retries) + ", after: " + result.reason);
  return line.take();
}

std::string line_of(const SaveResult& result, std::int64_t /*steps*/) {
  const std::string at = "checkpoint at step " + std::to_string(result.step);
  if (!result.reason.empty()) return at + " failed: " + result.reason;
  Line line(at);
  line.add(result.path);
  if (result.bytes > 0) line.add(size_text(result.bytes));
  return line.seconds(result.seconds).take();
}

std::string line_of(const OrderReport& report, std::int64_t /*steps*/) {
  const std::string giver = order_giver(report);
  const std::string start = (giver.empty() ? "" : giver + ": ") + order_effect(report);
  if (!is_final(report.state)) return {};
  if (report.state != OrderState::applied)
    return start + " " + std::string(to_string(report.state)) + because(report.error);
  return start + ", " + effect_text(report.applied.value_or(Applied{})) +
         (report.error.empty() ? "" : " · ALARM: " + report.error);
}

std::string line_of(const CallReport& report, std::int64_t /*steps*/) {
  if (report.state != CallState::failed) return {};  // what succeeds has an event of its own
  return report.action + " failed" + because(report.error);
}

std::string line_of(const RunChange& change, std::int64_t /*steps*/) {
  return std::string(to_string(change.state)) +
         (change.step ? " at step " + std::to_string(*change.step) : "") + because(change.reason);
}

std::string line_of(const RankChange& change, std::int64_t /*steps*/) {
  if (!change.text.empty()) return change.text;
  return "rank " + (change.rank ? std::to_string(*change.rank) : "?") + " " +
         std::string(to_string(change.state));
}

std::string line_of(const Warning& warning, std::int64_t /*steps*/) {
  return "warning: " + warning.text;
}

/// Who comes and goes is told to the others by their prompts alone.
std::string line_of(const ClientChange& /*change*/, std::int64_t /*steps*/) {
  return {};
}

/// A line that a job or a rule has printed.
std::string line_of(const JobLine& line, std::int64_t /*steps*/) {
  return "[" + line.job + "] " + line.text;
}

std::string line_of(const RuleChange& change, std::int64_t /*steps*/) {
  return change.text;
}

/// Of nccl.measure: how much was measured. What was found is in the event.
std::string line_of(const NcclMeasurement& found, std::int64_t /*steps*/) {
  Line line("nccl: measured " + std::to_string(found.steps) + " steps before step " +
            std::to_string(found.step));
  return line.number(found.step_ms, "ms/step").take();
}

std::string line_of(const StepProfile& profile, std::int64_t /*steps*/) {
  if (profile.path.empty()) return "profile.now failed" + because(profile.reason);
  Line line("profile of steps " + std::to_string(profile.first) + " to " +
            std::to_string(profile.first + profile.recorded - 1));
  if (profile.recorded < profile.steps)
    line.add(std::to_string(profile.recorded) + " of " + std::to_string(profile.steps) +
             " steps: they have many operations");
  if (profile.lost_collectives > 0)
    line.add(std::to_string(profile.lost_collectives) + " collectives are missing: a step has too many");
  if (!profile.missing.empty())
    line.add("traces of " + std::to_string(profile.missing.size()) + " ranks are on their own hosts");
  return line.add(profile.path).take();
}

std::string line_of(const Note& note, std::int64_t /*steps*/) {
  return "note: " + note.text;
}

std::string line_of(const RunResult& result, std::int64_t /*steps*/) {
  Line line("end: " + result.reason);
  line.add("step " + std::to_string(result.step)).loss(result.eval_loss, "held-out loss");
  line.loss(result.full_eval_loss, "loss of everything held out");
  return line.add(result.checkpoint.value_or("")).add("exit code " + std::to_string(result.code)).take();
}

/// As people write it, exact, as it may be typed again.
std::string shown(const Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return to_text(value);
  const auto tagged = number_from_json(Json(*text));
  return tagged ? shortest(*tagged) : *text;
}

}  // namespace

std::optional<std::string> event_line(const EventData& data, std::int64_t steps) {
  std::string text = std::visit([steps](const auto& one) { return line_of(one, steps); }, data);
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

std::optional<std::string> event_line(std::string_view topic, const Json& data, std::int64_t steps) {
  const auto known = from_word<Topic>(topic);
  if (!known) return std::nullopt;
  const auto read = event_data_from_json(*known, data);
  return read ? event_line(*read, steps) : std::nullopt;
}

std::string order_effect(const OrderReport& report) {
  std::vector<std::string> parts;
  if (report.applied)
    for (const Moved& moved : report.applied->moved) {
      const std::string before = shown(moved.before), after = shown(moved.after);
      parts.push_back(moved.name + (before == after ? " stays " : " " + before + " -> ") + after);
    }
  if (report.order && parts.empty())
    for (const Change& change : report.order->changes)
      parts.push_back(change.name + " -> " + shown(change.value));
  if (report.order)
    for (const Call& call : report.order->calls) parts.push_back(shown_text(call));
  if (!parts.empty()) return join(parts);
  return "order " + (report.id == 0 ? "?" : std::to_string(report.id));
}

std::string order_giver(const OrderReport& report) {
  return report.order ? given_by(report.order->user, report.order->session) : "";
}

}  // namespace footplate
