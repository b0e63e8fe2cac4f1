#include "runtime/train/metrics_line.h"

#include <chrono>
#include <cmath>
#include <utility>

namespace footplate {
namespace {

/// What a step consists of, and what each part is called in the metrics.
constexpr std::pair<Phase, const char*> kParts[] = {
    {Phase::data, "perf/data_ms"},           {Phase::forward, "perf/forward_ms"},
    {Phase::backward, "perf/backward_ms"},   {Phase::reduce, "perf/reduce_ms"},
    {Phase::optimizer, "perf/optimizer_ms"},
};

double in_mebibytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}

Json line_of(std::int64_t step) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return {{"step", step}, {"time", now.count()}};
}

/// Under one name are losses that can be compared.
const char* name_of(EvaluatedOn on) {
  switch (on) {
    case EvaluatedOn::batches:
      return "eval/loss";
    case EvaluatedOn::everything:
      return "eval/full_loss";
    case EvaluatedOn::other:
      return "eval/other_loss";
  }
  return "";
}

/// `group`: "eval/fashion/"; `choice`: "full_" before each name, where it is of other samples than usual.
void add_measured(Json& line, const std::string& group, const std::string& choice, const SetMetrics& of_set) {
  line[group + choice + "loss"] = number_to_json(of_set.loss);
  for (const auto& [name, value] : of_set.declared) line[group + choice + name] = number_to_json(value);
}

}  // namespace

Json train_line(std::int64_t step, const TrainMetrics& metrics, const PhaseTimer& timer) {
  Json line = line_of(step);
  line["train/loss"] = number_to_json(metrics.loss);
  line["train/lr"] = number_to_json(metrics.learning_rate);
  line["train/epoch"] = metrics.epoch;
  line["train/grad_norm"] = number_to_json(metrics.grad_norm);
  for (const auto& [name, value] : metrics.of_task) line["train/" + name] = number_to_json(value);
  if (metrics.nonfinite > 0) line["guard/nonfinite"] = metrics.nonfinite;
  const double per_step_ms = 1e3 / static_cast<double>(metrics.steps);
  double seconds = 0;
  for (const auto& [phase, name] : kParts) {
    line[name] = timer.spent(phase).count() * per_step_ms;
    seconds += timer.spent(phase).count();
  }
  line["perf/step_ms"] = seconds * per_step_ms;
  const double tokens_per_s = static_cast<double>(metrics.tokens) / seconds;
  line["perf/tokens_per_s"] = number_to_json(tokens_per_s);
  if (metrics.unit != kUsualUnit) line["unit"] = metrics.unit;
  if (metrics.flops_per_token > 0) {
    const double tflops = tokens_per_s * metrics.flops_per_token / 1e12;
    line["perf/tflops"] = number_to_json(tflops);
    if (metrics.peak_tflops > 0) line["perf/mfu"] = number_to_json(tflops / metrics.peak_tflops);
  }
  if (metrics.memory) {
    line["mem/allocated_mib"] = in_mebibytes(metrics.memory->allocated);
    line["mem/peak_mib"] = in_mebibytes(metrics.memory->most_allocated);
    line["mem/reserved_mib"] = in_mebibytes(metrics.memory->reserved);
  }
  return line;
}

Json sets_line(std::int64_t step, const std::vector<SetLine>& sets) {
  Json line = line_of(step);
  for (const SetLine& set : sets) {
    const std::string group = "data/" + set.name + "/";
    line[group + "samples"] = set.drawn;
    line[group + "epoch"] = set.epoch;
    if (set.metrics.weight > 0) add_measured(line, group, "", set.metrics);
  }
  return line;
}

Json eval_line(std::int64_t step, const EvalResult& result, double best, std::span<const v1::DataSet> sets) {
  Json line = line_of(step);
  const std::string loss = name_of(result.on);
  line[loss] = number_to_json(result.loss);
  const std::string group = loss.substr(0, loss.size() - std::string_view("loss").size());
  for (const auto& [name, value] : result.metrics.all.declared) line[group + name] = number_to_json(value);
  const std::string choice = group.substr(std::string_view("eval/").size());
  for (std::size_t set = 0; set < result.metrics.sets.size(); ++set)
    if (result.metrics.sets[set].weight > 0)
      add_measured(line, "eval/" + sets[set].name + "/", choice, result.metrics.sets[set]);
  if (std::isfinite(best)) line["eval/best"] = best;
  line["eval/seconds"] = result.seconds;
  if (result.retries > 0) {
    line["eval/retries"] = result.retries;
    line["eval/reason"] = result.reason;
  }
  if (result.partial()) {
    line["eval/partial"] = 1;
    line["eval/batches"] = result.batches;
    line["eval/batches_wanted"] = result.batches_wanted;
  }
  return line;
}

Json eval_failed_line(std::int64_t step, const Error& error) {
  Json line = line_of(step);
  line["eval/evaluation_failed"] = 1;
  line["eval/reason"] = error.message;
  return line;
}

}  // namespace footplate
