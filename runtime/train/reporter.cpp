#include "runtime/train/reporter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <utility>

#include "runtime/watch/event_parts.h"

namespace footplate {
namespace {

/// Of this process, in MiB; 0 where the system doesn't tell.
double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  double resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

}  // namespace

void Reporter::log(const std::string& text) const {
  if (training_.options.log) training_.options.log(text);
}

void Reporter::say(const std::string& text) const {
  if (training_.rank() == 0) log(text);
}

void Reporter::publish(EventData event) const {
  if (training_.rank() == 0 && training_.gate != nullptr) training_.gate->publish(std::move(event));
}

void Reporter::warn(WarningKind kind, std::int64_t step, const std::string& text) const {
  say(text);
  publish(warning_at(kind, step, text));
}

void Reporter::write(Json line) const {
  if (training_.rank() != 0 || training_.options.sink == nullptr) return;
  line["branch"] = training_.options.branch;
  training_.options.sink->write(line);
}

void Reporter::count(const StepOutcome& outcome) {
  last_ = outcome;
  tokens_ += static_cast<std::int64_t>(outcome.sums.tokens);
  ++steps_;
}

void Reporter::write_steps(const std::map<std::string, double>& of_task) {
  if (training_.rank() == 0) {
    Json line = train_line(training_.position.step, metrics(of_task), training_.timer);
    if (training_.options.settings.boolean("log.memory")) line["mem/resident_mib"] = resident_mib();
    write(std::move(line));
  }
  training_.timer.reset();
  training_.device.forget_peak();
  tokens_ = steps_ = 0;
}

void Reporter::write_sets(const std::vector<SetMetrics>& of_sets) const {
  std::vector<SetLine> sets;
  for (std::size_t set = 0; set < of_sets.size(); ++set) {
    const std::int64_t drawn = training_.position.sets[set].drawn;
    sets.push_back({training_.task->sets()[set].name, of_sets[set], drawn,
                    static_cast<double>(drawn) / training_.task->samples_per_epoch(static_cast<int>(set))});
  }
  write(sets_line(training_.position.step, sets));
}

/// Of several data sets: passes over all of them, on average.
double Reporter::epoch() const {
  double samples = 0;
  for (std::size_t set = 0; set < training_.position.sets.size(); ++set)
    samples += training_.task->samples_per_epoch(static_cast<int>(set));
  return static_cast<double>(training_.position.samples_drawn()) / samples;
}

TrainMetrics Reporter::metrics(const std::map<std::string, double>& of_task) const {
  const StepSettings& now = training_.now;
  const double peak =
      now.peak_tflops > 0 ? now.peak_tflops : training_.device.peak_tflops(now.precision).value_or(0);
  TrainMetrics metrics;
  metrics.loss = static_cast<double>(last_.sums.loss) / static_cast<double>(last_.sums.tokens);
  metrics.learning_rate = last_.learning_rate;
  metrics.epoch = epoch();
  metrics.grad_norm = last_.grad_norm;
  metrics.of_task = of_task;
  metrics.steps = steps_;
  metrics.tokens = tokens_;
  metrics.unit = training_.task->declaration().unit;
  metrics.nonfinite = last_.nonfinite;
  metrics.flops_per_token = training_.task->flops_per_token();
  metrics.peak_tflops = peak * training_.world_size();
  metrics.memory = training_.device.memory();
  return metrics;
}

void Reporter::warn_of_warmup() {
  const std::string text = warmup_warning(training_.now.schedule);
  if (!text.empty() && text != warmup_) warn(WarningKind::other, training_.position.step, text);
  warmup_ = text;
}

void Reporter::tell_data() {
  std::string text;
  if (training_.device.is_host() && training_.options.settings.source("data.pin_memory") != "default")
    text = "data.pin_memory changes nothing on the processors";
  if (training_.options.settings.string("data.cache") != "none" && !training_.task->declaration().cacheable)
    text += (text.empty() ? "" : "; ") +
            fmt::format(
                "data.cache keeps nothing: run.task = \"{}\" doesn't say that a sample is the same in "
                "each epoch (docs/presets.md)",
                training_.task_name);
  if (text != data_ && !text.empty()) say(text);
  data_ = text;
}

void Reporter::tell_computing() {
  const StepSettings& now = training_.now;
  std::string text = fmt::format("computes in {} on {}", now.precision == Precision::bf16 ? "bf16" : "fp32",
                                 training_.device.description());
  if (const std::string kernels = training_.task->runs_on(now.precision); !kernels.empty())
    text += "; " + kernels;
  if (now.gradient_checkpointing)
    text += training_.task->can_recompute()
                ? "; backward computes activations once more (train.gradient_checkpointing)"
                : "; train.gradient_checkpointing changes nothing: run.task = \"" + training_.task_name +
                      "\" keeps no activations";
  if (now.cuda_graph) {
    const std::string why = training_.cant_record();
    text += why.empty() ? "; steps are recorded (train.cuda_graph)"
                        : "; train.cuda_graph changes nothing: " + why;
  }
  if (text != computing_) say(text);
  computing_ = text;
}

}  // namespace footplate
