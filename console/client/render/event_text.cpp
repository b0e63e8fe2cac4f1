#include "console/client/render/event_text.h"

#include <array>
#include <cmath>

#include "console/client/render/render.h"
#include "console/client/runs/run_record.h"
#include "protocol/order.h"
#include "protocol/value.h"

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

std::string shown(const Json& value) {
  if (const auto number = number_from_json(value))
    return value.is_number_integer() ? value.dump() : shortest(*number);
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string whole(const Json& data, const char* name) {
  const double value = number_of(data, name);
  return std::isfinite(value) ? std::to_string(std::llround(value)) : "?";
}

/// " · loss 2.31", or nothing.
std::string part(const Json& data, const char* name, const std::string& label, const std::string& unit = "") {
  const Json value = member(data, name);
  if (!number_from_json(value)) return {};
  return " · " + (label.empty() ? "" : label + " ") + rounded(*number_from_json(value)) + unit;
}

void append(std::string& text, const std::string& item) {
  text += (text.empty() ? "" : ", ") + item;
}

std::string metrics_text(const Json& data) {
  if (!data.contains("train/loss")) return {};  // evaluations have an event of their own
  return "step " + whole(data, "step") + part(data, "train/loss", "loss") + part(data, "train/lr", "lr") +
         part(data, "perf/tokens_per_s", "", " tokens/s") + part(data, "perf/step_ms", "", " ms a step");
}

std::string eval_text(const Json& data) {
  const std::string at = "eval at step " + whole(data, "step");
  if (!data.contains("loss")) {
    const std::string why = text_of(data, "reason") + error_message(data);
    return at + " failed" + (why.empty() ? "" : ": " + why);
  }
  const bool has_best = std::isfinite(number_of(data, "best"));  // none yet: infinity
  return at + part(data, "loss", "loss") + (has_best ? part(data, "best", "best") : "") +
         part(data, "seconds", "", " s") +
         (flag_of(data, "partial")
              ? " · partial, " + whole(data, "batches") + " of " + whole(data, "batches_wanted") + " batches"
              : "") +
         (data.contains("retries")
              ? " · retry " + whole(data, "retries") + ", after: " + text_of(data, "reason")
              : "");
}

std::string ckpt_text(const Json& data) {
  const std::string at = "checkpoint at step " + whole(data, "step");
  const std::string why = text_of(data, "reason") + error_message(data);
  if (!why.empty()) return at + " failed: " + why;
  const std::string path = text_of(data, "path");
  return at + (path.empty() ? "" : " · " + path) + part(data, "seconds", "", " s");
}

std::string order_text(const Json& report) {
  const std::string state = text_of(report, "state");
  const std::string giver = given_by(order_user(report), order_session(report));
  const std::string who = giver.empty() ? "" : giver + ": ";
  const std::string error = error_message(report);
  if (state == "applied") {
    const Applied applied = applied_from_json(member(report, "applied")).value_or(Applied{});
    return who + order_effect(report) + ", " + effect_text(applied) +
           (error.empty() ? "" : " · ALARM: " + error);
  }
  if (state != "refused" && state != "aborted" && state != "withdrawn") return {};
  return who + order_effect(report) + " " + state + (error.empty() ? "" : ": " + error);
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

std::string client_text(const Json& data) {
  const std::string from = text_of(data, "from");
  return text_of(data, "user") + " " + text_of(data, "state") + (from.empty() ? "" : " (" + from + ")");
}

std::string warn_text(const Json& data) {
  return "warning: " + text_of(data, "text") + error_message(data);
}

/// A line that a job or a rule has printed.
std::string job_text(const Json& data) {
  return "[" + text_of(data, "job") + "] " + text_of(data, "text");
}

std::string rule_text(const Json& data) {
  return text_of(data, "text");
}

/// What nccl.measure has found: a table of a line for each way and size.
std::string nccl_text(const Json& data) {
  const std::string head = "nccl: " + whole(data, "steps") + " steps before step " + whole(data, "step") +
                           part(data, "step_ms", "", " ms a step");
  std::vector<std::vector<std::string>> rows{{"collective", "from bytes", "count", "algorithm", "protocol",
                                              "channels", "mean us", "longest", "bus GB/s"}};
  for (const auto& row : list(data, "collectives"))
    rows.push_back({text_of(row, "collective"), whole(row, "at_least"), whole(row, "count"),
                    text_of(row, "algorithm"), text_of(row, "protocol"), whole(row, "channels"),
                    rounded(number_of(row, "mean_us")), rounded(number_of(row, "most_us")),
                    rounded(number_of(row, "bus_gb_per_s"), 3)});
  if (rows.size() == 1) return head + ", no collective was told of";
  std::string text = head + "\n" + table(rows);
  text.pop_back();  // the newline
  return text;
}

struct Topic {
  const char* name;
  std::string (*text)(const Json& data);
};
constexpr std::array kTopics{
    Topic{"metrics", metrics_text}, Topic{"eval", eval_text}, Topic{"ckpt", ckpt_text},
    Topic{"order", order_text},     Topic{"call", call_text}, Topic{"run", run_text},
    Topic{"rank", rank_text},       Topic{"warn", warn_text}, Topic{"client", client_text},
    Topic{"job", job_text},         Topic{"rule", rule_text}, Topic{"nccl", nccl_text}};

}  // namespace

std::optional<std::string> event_text(const std::string& topic, const Json& data) {
  if (!data.is_object()) return std::nullopt;
  for (const Topic& known : kTopics) {
    if (topic != known.name) continue;
    std::string text = known.text(data);
    return text.empty() ? std::nullopt : std::optional(std::move(text));
  }
  const std::string text = text_of(data, "text");
  return text.empty() ? std::nullopt : std::optional(topic + ": " + text);
}

std::string order_effect(const Json& report) {
  std::string effect;
  const Json order = member(report, "order");
  const Json moved = list(member(report, "applied"), "moved");
  for (const auto& item : moved)
    append(effect, text_of(item, "name") +
                       (member(item, "before") == member(item, "after")
                            ? " stays "
                            : " " + shown(member(item, "before")) + " -> ") +
                       shown(member(item, "after")));
  if (moved.empty())
    for (const auto& change : list(order, "changes"))
      append(effect, text_of(change, "name") + " -> " + shown(member(change, "value")));
  for (const auto& call : list(order, "calls"))
    append(effect, to_text(Call{text_of(call, "action"), member(call, "arguments")}));
  return effect.empty() ? "order " + whole(report, "id") : effect;
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
