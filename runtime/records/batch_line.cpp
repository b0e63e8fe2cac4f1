#include "runtime/records/batch_line.h"

#include <cmath>

#include "protocol/iso_time.h"
#include "protocol/order.h"
#include "protocol/value.h"

namespace footplate {
namespace {

constexpr std::string_view kBetween = " · ";

std::optional<double> number(const Json& data, const char* name) {
  const auto found = data.find(name);
  return found == data.end() ? std::nullopt : number_from_json(*found);
}

std::string text(const Json& data, const char* name) {
  const auto found = data.find(name);
  return found != data.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// The first of the fields that holds a text.
std::string text_of(const Json& data, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::string value = text(data, name); !value.empty()) return value;
  return {};
}

std::string whole(const Json& data, const char* name) {
  const auto value = number(data, name);
  return value && std::isfinite(*value) ? std::to_string(static_cast<long long>(*value)) : std::string("?");
}

/// A line put together part by part; parts that are empty leave no trace.
class Parts {
 public:
  explicit Parts(std::string start) : line_(std::move(start)) {}
  Parts& add(const std::string& part) {
    if (!part.empty()) line_ += std::string(kBetween) + part;
    return *this;
  }
  Parts& number_of(const Json& data, const char* name, const std::string& label) {
    if (const auto value = number(data, name)) add(label + " " + short_number(*value));
    return *this;
  }
  /// Nothing where it is infinite: there is none yet.
  Parts& best_of(const Json& data) {
    const auto value = number(data, "best");
    return value && std::isfinite(*value) ? number_of(data, "best", "best") : *this;
  }
  std::string take() { return std::move(line_); }

 private:
  std::string line_;
};

/// "4.2 s" of a field in seconds.
std::string seconds_of(const Json& data) {
  const auto seconds = number(data, "seconds");
  return seconds ? short_number(*seconds) + " s" : std::string();
}

std::optional<std::string> metrics_text(const Json& data, std::int64_t steps) {
  if (!data.contains("train/loss")) return std::nullopt;  // evaluations have an event of their own
  const auto step = number(data, "step");
  const auto step_ms = number(data, "perf/step_ms");
  const auto tokens = number(data, "perf/tokens_per_s");
  Parts parts("step " + whole(data, "step") + (steps > 0 ? "/" + std::to_string(steps) : ""));
  parts.number_of(data, "train/loss", "loss").number_of(data, "train/lr", "lr");
  if (tokens) parts.add(count_text(*tokens) + " tok/s");
  if (const auto used = number(data, "perf/mfu")) parts.add(short_number(*used * 100) + " % MFU");
  if (step_ms) parts.add(short_number(*step_ms) + " ms/step");
  if (step && step_ms && static_cast<double>(steps) > *step)
    parts.add("eta " + duration_text((static_cast<double>(steps) - *step) * *step_ms / 1e3));
  return parts.take();
}

std::string eval_text(const Json& data) {
  const std::string at = "eval at step " + whole(data, "step");
  const std::string reason = text_of(data, {"reason", "error"});
  if (!data.contains("loss")) return at + " failed" + (reason.empty() ? "" : ": " + reason);
  Parts parts(at);
  parts.number_of(data, "loss", "loss").best_of(data).add(seconds_of(data));
  if (data.contains("partial") && data["partial"] == true)
    parts.add("partial, " + whole(data, "batches") + " of " + whole(data, "batches_wanted") + " batches");
  if (data.contains("retries")) parts.add("retry " + whole(data, "retries") + ", after: " + reason);
  return parts.take();
}

std::string ckpt_text(const Json& data) {
  const std::string reason = text_of(data, {"error", "reason"});
  if (!reason.empty()) return "checkpoint at step " + whole(data, "step") + " failed: " + reason;
  Parts parts("checkpoint at step " + whole(data, "step"));
  parts.add(text(data, "path"));
  if (const auto bytes = number(data, "bytes")) parts.add(count_text(*bytes) + "B");
  return parts.add(seconds_of(data)).take();
}

/// A value as people write it: 1 and not 1.0, linear without quotes, {0.9, 0.95}.
std::string shown(const Json& value) {
  if (value.is_string() && !number_from_json(value)) return value.get<std::string>();
  if (value.is_number_float() || value.is_string()) return shortest(*number_from_json(value));
  if (!value.is_array()) return value.dump();
  std::string list;
  for (const Json& item : value) list += (list.empty() ? "" : ", ") + shown(item);
  return "{" + list + "}";
}

/// "log.every 50 -> 10, optim.lr 1e-3 -> 5e-4, train.steps stays 1000", or the actions of an order that
/// changed nothing.
std::string order_effect(const Json& report) {
  std::string effect;
  const auto add = [&effect](const std::string& part) { effect += (effect.empty() ? "" : ", ") + part; };
  const Json applied = report.value("applied", Json::object());
  for (const auto& moved : applied.value("moved", Json::array())) {
    const std::string before = shown(moved.value("before", Json())),
                      after = shown(moved.value("after", Json()));
    add(moved.value("name", "?") + (before == after ? " stays " + after : " " + before + " -> " + after));
  }
  for (const auto& call : report.value("calls", Json::array())) add(call.value("action", "?"));
  return effect.empty() ? "order " + whole(report, "id") : effect;
}

std::optional<std::string> order_text(const Json& report) {
  const std::string state = text(report, "state");
  const std::string error = text(report, "error");
  if (state == "applied") {
    const Applied applied = applied_from_json(report.value("applied", Json::object())).value_or(Applied{});
    const Json order = report.value("order", Json::object());
    const std::string user = given_by(text(order, "user"), text(order, "session"));
    return order_effect(report) + ", " + effect_text(applied) + (user.empty() ? "" : " (" + user + ")") +
           (error.empty() ? "" : std::string(kBetween) + error);
  }
  if (state != "refused" && state != "aborted" && state != "withdrawn") return std::nullopt;
  return "order " + whole(report, "id") + " " + state + (error.empty() ? "" : ": " + error);
}

std::optional<std::string> call_text(const Json& report) {
  if (text(report, "state") != "failed") return std::nullopt;  // what succeeds has its own event
  const std::string error = text(report, "error");
  return text(report, "action") + " failed" + (error.empty() ? "" : ": " + error);
}

std::string run_text(const Json& data) {
  Parts parts(text(data, "state"));
  if (data.contains("step")) parts.add("step " + whole(data, "step"));
  return parts.add(text(data, "reason")).take();
}

std::string rank_text(const Json& data) {
  const std::string said = text(data, "text");
  return said.empty() ? "rank " + whole(data, "rank") + " " + text(data, "state") : said;
}

/// Of nccl.measure; what was found is in events.jsonl.
std::string nccl_text(const Json& data) {
  Parts parts("nccl: measured " + whole(data, "steps") + " steps before step " + whole(data, "step"));
  if (const auto time = number(data, "step_ms")) parts.add(short_number(*time) + " ms a step");
  return parts.take();
}

std::string end_text(const Json& result) {
  Parts parts("end: " + text(result, "reason"));
  parts.add("step " + whole(result, "step")).number_of(result, "eval_loss", "held-out loss");
  return parts.add(text(result, "checkpoint")).add("exit code " + whole(result, "code")).take();
}

std::optional<std::string> text_for(std::string_view topic, const Json& data, std::int64_t steps) {
  if (topic == "metrics") return metrics_text(data, steps);
  if (topic == "eval") return eval_text(data);
  if (topic == "ckpt") return ckpt_text(data);
  if (topic == "order") return order_text(data);
  if (topic == "call") return call_text(data);
  if (topic == "run") return run_text(data);
  if (topic == "rank") return rank_text(data);
  if (topic == "warn") return "warning: " + text_of(data, {"text", "error"});
  if (topic == "job") return "[" + text(data, "job") + "] " + text(data, "text");
  if (topic == "note") return "note: " + text(data, "text");
  if (topic == "rule") return text(data, "text");
  if (topic == "nccl") return nccl_text(data);
  if (topic == "end") return end_text(data);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> batch_line(std::chrono::system_clock::time_point time, std::string_view topic,
                                      const Json& data, std::int64_t steps) {
  if (!data.is_object()) return std::nullopt;
  try {
    const auto said = text_for(topic, data, steps);
    if (!said || said->empty()) return std::nullopt;
    return iso_seconds(time) + " " + plain(*said);
  } catch (const Json::exception&) {  // a field of another type than documented: better no line than no run
    return std::nullopt;
  }
}

}  // namespace footplate
