#include "runtime/train/metrics_line.h"

#include <chrono>
#include <cmath>
#include <utility>

namespace footplate {
namespace {

/// What a step consists of, and what each part is called in the metrics: its mean, and its sum over an epoch.
struct StepPart {
  Phase phase;
  const char* mean_ms;
  const char* epoch_s;
};
constexpr StepPart kStepParts[] = {
    {Phase::data, "perf/data_ms", "perf/epoch_data_loading_time"},
    {Phase::forward, "perf/forward_ms", "perf/epoch_forward_time"},
    {Phase::backward, "perf/backward_ms", "perf/epoch_backward_time"},
    {Phase::reduce, "perf/reduce_ms", "perf/epoch_reduce_time"},
    {Phase::optimizer, "perf/optimizer_ms", "perf/epoch_optimizer_time"},
};

/// Of steps that took no time none is known.
Json share(PhaseTimes::Seconds part, PhaseTimes::Seconds all) {
  return number_to_json(part.count() / all.count());
}
Json data_share(const PhaseTimes& times) {
  return share(times.of(Phase::data), times.steps());
}
Json compute_share(const PhaseTimes& times) {
  return share(times.computing(), times.steps());
}

double in_mebibytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
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

/// Of an evaluation of several data sets, those that it had samples of.
void add_sets(Json& line, const std::string& choice, const TaskMetrics& metrics,
              std::span<const v1::DataSet> sets) {
  for (std::size_t set = 0; set < metrics.sets.size(); ++set)
    if (metrics.sets[set].weight > 0)
      add_measured(line, "eval/" + sets[set].name + "/", choice, metrics.sets[set]);
}

}  // namespace

Json line_at(std::int64_t step) {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return {{"step", step}, {"time", now.count()}};
}

void add_to(Json& line, const LightMetrics& metrics) {
  line["train/loss"] = number_to_json(metrics.loss);
  line["train/lr"] = number_to_json(metrics.learning_rate);
  if (std::isfinite(metrics.epoch)) line["train/epoch"] = metrics.epoch;
  for (const auto& [name, value] : metrics.of_task) line["train/" + name] = number_to_json(value);
  if (metrics.nonfinite > 0) line["guard/nonfinite"] = metrics.nonfinite;
}

void add_to(Json& line, const Performance& performance) {
  const double seconds = performance.of.times.steps().count();
  line["perf/step_ms"] = seconds * 1e3 / static_cast<double>(performance.of.steps);
  const double tokens_per_s = static_cast<double>(performance.of.tokens) / seconds;
  line["perf/tokens_per_s"] = number_to_json(tokens_per_s);
  if (performance.unit != kUsualUnit) line["unit"] = performance.unit;
  if (performance.flops_per_token <= 0) return;
  const double tflops = tokens_per_s * performance.flops_per_token / 1e12;
  line["perf/tflops"] = number_to_json(tflops);
  if (performance.peak_tflops > 0) line["perf/mfu"] = number_to_json(tflops / performance.peak_tflops);
}

void add_to(Json& line, const Details& details) {
  line["train/grad_norm"] = number_to_json(details.grad_norm);
  const double per_step_ms = 1e3 / static_cast<double>(details.of.steps);
  for (const auto& [phase, name, unused] : kStepParts)
    line[name] = number_to_json(details.of.times.of(phase).count() * per_step_ms);
  line["perf/data_ratio"] = data_share(details.of.times);
  line["perf/compute_ratio"] = compute_share(details.of.times);
  if (details.memory.resident > 0) line["mem/resident_mib"] = in_mebibytes(details.memory.resident);
  if (!details.memory.device) return;
  line["mem/allocated_mib"] = in_mebibytes(details.memory.device->allocated);
  line["mem/peak_mib"] = in_mebibytes(details.memory.device->most_allocated);
  line["mem/reserved_mib"] = in_mebibytes(details.memory.device->reserved);
}

void add_to(Json& line, const GaugeReading& reading) {
  const auto add = [&line](const char* name, const std::optional<double>& value) {
    if (value) line[name] = number_to_json(*value);
  };
  add("gpu/util", reading.utilisation);
  add("gpu/memory_mib", reading.memory_mib);
  add("gpu/power_w", reading.power_w);
  add("gpu/temperature_c", reading.temperature_c);
}

void add_to(Json& line, const std::vector<SetLine>& sets) {
  for (const SetLine& set : sets) {
    const std::string group = "data/" + set.name + "/";
    line[group + "samples"] = set.drawn;
    if (std::isfinite(set.epoch)) line[group + "epoch"] = set.epoch;  // not of one that is only evaluated
    if (set.metrics.weight > 0) add_measured(line, group, "", set.metrics);
  }
}

void add_to(Json& line, const EpochSums& sums) {
  for (const auto& [phase, unused, name] : kStepParts)
    line[name] = number_to_json(sums.of.times.of(phase).count());
  line["perf/epoch_steps"] = sums.of.steps;
  line["perf/epoch_data_loading_ratio"] = data_share(sums.of.times);
  line["perf/epoch_compute_ratio"] = compute_share(sums.of.times);
  if (sums.memory_gib > 0) line["perf/epoch_avg_memory_gb"] = sums.memory_gib;
}

Json eval_line(std::int64_t step, const EvalResult& result, double best, std::span<const v1::DataSet> sets) {
  Json line = line_at(step);
  const std::string loss = name_of(result.on);
  line[loss] = number_to_json(result.loss);
  const std::string group = loss.substr(0, loss.size() - std::string_view("loss").size());
  for (const auto& [name, value] : result.metrics.all.declared) line[group + name] = number_to_json(value);
  add_sets(line, group.substr(std::string_view("eval/").size()), result.metrics, sets);
  if (std::isfinite(best)) line["eval/best"] = best;
  line["eval/seconds"] = result.seconds;
  if (result.waited_s) line["eval/waited_s"] = *result.waited_s;
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

Json eval_failed_line(std::int64_t step, const Error& error, const std::optional<LocalEvaluation>& local,
                      std::span<const v1::DataSet> sets) {
  Json line = line_at(step);
  line["eval/evaluation_failed"] = 1;
  line["eval/reason"] = error.message;
  if (!local) return line;
  line["eval/local_loss"] = number_to_json(local->loss);
  for (const auto& [name, value] : local->metrics.all.declared)
    line["eval/local_" + name] = number_to_json(value);
  add_sets(line, "local_", local->metrics, sets);
  return line;
}

}  // namespace footplate
