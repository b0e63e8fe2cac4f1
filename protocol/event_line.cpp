#include "protocol/event_line.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "protocol/json_fields.h"
#include "protocol/order.h"
#include "protocol/value.h"
#include "protocol/words.h"

namespace footplate {
namespace {

Json member(const Json& object, const char* name) {
  if (!object.is_object()) return {};
  const auto found = object.find(name);
  return found == object.end() ? Json() : *found;
}

Json list(const Json& object, const char* name) {
  Json found = member(object, name);
  return found.is_array() ? found : Json::array();
}

/// A value as people write it: 1 and not 1.0, linear without quotes, {0.9, 0.95}; exact, as it may be typed
/// again.
std::string shown(const Json& value) {
  if (value.is_number_float() || (value.is_string() && number_from_json(value)))
    return shortest(*number_from_json(value));
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::vector<std::string> items;
  for (const Json& item : value) items.push_back(shown(item));
  return "{" + join(items) + "}";
}

std::string whole(const Json& data, const char* name) {
  const double value = number_of(data, name);
  return std::isfinite(value) ? rounded(std::trunc(value), 15) : "?";
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
  Line& number(const Json& data, const char* name, const std::string& unit, double scale = 1) {
    const auto value = number_from_json(member(data, name));
    return value ? add(rounded_or_nan(*value * scale) + " " + unit) : *this;
  }
  Line& labelled(const Json& data, const char* name, const std::string& label) {
    const auto value = number_from_json(member(data, name));
    return value ? add(label + " " + rounded_or_nan(*value)) : *this;
  }
  Line& loss(const Json& data, const char* name, const std::string& label) {
    const auto value = number_from_json(member(data, name));
    return value ? add(label + " " + loss_text(*value)) : *this;
  }
  std::string take() { return std::move(text_); }

 private:
  static std::string rounded_or_nan(double value) { return std::isnan(value) ? "nan" : rounded(value); }

  std::string text_;
};

std::string why(const Json& data) {
  const std::string reason = text_of(data, "reason");
  return reason.empty() ? error_message(data) : reason;
}

std::string metrics_text(const Json& data, std::int64_t steps) {
  if (!data.contains("train/loss")) return {};  // evaluations have an event of their own
  Line line("step " + whole(data, "step") + (steps > 0 ? "/" + std::to_string(steps) : ""));
  line.loss(data, "train/loss", "loss").labelled(data, "train/lr", "lr");
  line.number(data, "perf/tokens_per_s", "tokens/s").number(data, "perf/mfu", "% MFU", 100);
  line.number(data, "perf/step_ms", "ms/step");
  const double left_s =
      (static_cast<double>(steps) - number_of(data, "step")) * number_of(data, "perf/step_ms") / 1e3;
  if (steps > 0 && left_s > 0) line.add("eta " + duration(left_s));
  return line.take();
}

std::string eval_text(const Json& data) {
  const std::string at = "eval at step " + whole(data, "step");
  if (!data.contains("loss")) return at + " failed" + (why(data).empty() ? "" : ": " + why(data));
  Line line(at);
  line.loss(data, "loss", "loss");
  if (std::isfinite(number_of(data, "best"))) line.loss(data, "best", "best");  // none yet: infinity
  line.number(data, "seconds", "s");
  if (flag_of(data, "partial"))
    line.add("partial, " + whole(data, "batches") + " of " + whole(data, "batches_wanted") + " batches");
  if (data.contains("retries"))
    line.add("retry " + whole(data, "retries") + ", after: " + text_of(data, "reason"));
  return line.take();
}

std::string ckpt_text(const Json& data) {
  const std::string at = "checkpoint at step " + whole(data, "step");
  if (!why(data).empty()) return at + " failed: " + why(data);
  Line line(at);
  line.add(text_of(data, "path"));
  if (const std::int64_t bytes = integer_of(data, "bytes", -1); bytes >= 0)
    line.add(size_text(static_cast<std::uint64_t>(bytes)));
  return line.number(data, "seconds", "s").take();
}

std::string order_text(const Json& report) {
  const std::string state = text_of(report, "state");
  const std::string giver = given_by(order_user(report), order_session(report));
  const std::string start = (giver.empty() ? "" : giver + ": ") + order_effect(report);
  const std::string error = error_message(report);
  if (state == "applied") {
    const Applied applied = applied_from_json(member(report, "applied")).value_or(Applied{});
    return start + ", " + effect_text(applied) + (error.empty() ? "" : " · ALARM: " + error);
  }
  if (state != "refused" && state != "aborted" && state != "withdrawn") return {};
  return start + " " + state + (error.empty() ? "" : ": " + error);
}

std::string call_text(const Json& report) {
  if (text_of(report, "state") != "failed") return {};  // what succeeds has an event of its own
  const std::string error = error_message(report);
  return text_of(report, "action") + " failed" + (error.empty() ? "" : ": " + error);
}

std::string run_text(const Json& data) {
  const std::string reason = text_of(data, "reason");
  return text_of(data, "state") + (data.contains("step") ? " at step " + whole(data, "step") : "") +
         (reason.empty() ? "" : ": " + reason);
}

std::string rank_text(const Json& data) {
  const std::string said = text_of(data, "text");
  return said.empty() ? "rank " + whole(data, "rank") + " " + text_of(data, "state") : said;
}

std::string warn_text(const Json& data) {
  const std::string text = text_of(data, "text");
  return "warning: " + (text.empty() ? error_message(data) : text);
}

/// A line that a job or a rule has printed.
std::string job_text(const Json& data) {
  return "[" + text_of(data, "job") + "] " + text_of(data, "text");
}

std::string note_text(const Json& data) {
  return "note: " + text_of(data, "text");
}

std::string rule_text(const Json& data) {
  return text_of(data, "text");
}

/// Of nccl.measure: how much was measured. What was found is in the event.
std::string nccl_text(const Json& data) {
  Line line("nccl: measured " + whole(data, "steps") + " steps before step " + whole(data, "step"));
  return line.number(data, "step_ms", "ms/step").take();
}

std::string end_text(const Json& result) {
  Line line("end: " + text_of(result, "reason"));
  line.add("step " + whole(result, "step")).loss(result, "eval_loss", "held-out loss");
  return line.add(text_of(result, "checkpoint")).add("exit code " + whole(result, "code")).take();
}

struct Topic {
  const char* name;
  std::string (*text)(const Json& data);
};
constexpr std::array kTopics{Topic{"eval", eval_text}, Topic{"ckpt", ckpt_text}, Topic{"order", order_text},
                             Topic{"call", call_text}, Topic{"run", run_text},   Topic{"rank", rank_text},
                             Topic{"warn", warn_text}, Topic{"job", job_text},   Topic{"note", note_text},
                             Topic{"rule", rule_text}, Topic{"nccl", nccl_text}, Topic{"end", end_text}};

std::string text_for(std::string_view topic, const Json& data, std::int64_t steps) {
  if (topic == "metrics") return metrics_text(data, steps);
  for (const Topic& known : kTopics)
    if (topic == known.name) return known.text(data);
  return {};
}

}  // namespace

std::optional<std::string> event_line(std::string_view topic, const Json& data, std::int64_t steps) {
  if (!data.is_object()) return std::nullopt;
  std::string text = text_for(topic, data, steps);
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

bool is_known_topic(std::string_view topic) {
  return topic == "metrics" ||
         std::any_of(kTopics.begin(), kTopics.end(), [&](const Topic& known) { return topic == known.name; });
}

std::string order_effect(const Json& report) {
  std::vector<std::string> parts;
  const Json order = member(report, "order");
  const Json moved = list(member(report, "applied"), "moved");
  for (const auto& item : moved) {
    const std::string before = shown(member(item, "before")), after = shown(member(item, "after"));
    parts.push_back(text_of(item, "name") + (before == after ? " stays " : " " + before + " -> ") + after);
  }
  if (moved.empty())
    for (const auto& change : list(order, "changes"))
      parts.push_back(text_of(change, "name") + " -> " + shown(member(change, "value")));
  for (const auto& call : list(order, "calls"))
    parts.push_back(to_text(Call{text_of(call, "action"), member(call, "arguments")}));
  return parts.empty() ? "order " + whole(report, "id") : join(parts);
}

std::string order_user(const Json& report) {
  return text_of(member(report, "order"), "user");
}

std::string order_session(const Json& report) {
  return text_of(member(report, "order"), "session");
}

std::string error_message(const Json& data) {
  const Json error = member(data, "error");
  return error.is_string() ? error.get<std::string>() : text_of(error, "message");
}

}  // namespace footplate
