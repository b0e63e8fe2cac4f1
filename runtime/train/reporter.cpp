#include "runtime/train/reporter.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <utility>

#include "runtime/device/host_kernels/products.h"
#include "runtime/watch/event_parts.h"

namespace footplate {
namespace {

/// Shorter ones have no sums of their own.
constexpr double kFewestStepsOfAnEpoch = 2;

/// Of this process, in bytes; 0 where the system doesn't tell.
std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t pages = 0;
  std::int64_t resident = 0;
  statm >> pages >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
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
  if (training_.options.sink == nullptr) return;
  if (training_.rank() != 0) return training_.options.sink->keep(line);
  line["branch"] = training_.options.branch;
  training_.options.sink->write(line);
}

void Reporter::configure(const StepSettings& before) {
  const StepSettings& now = training_.now;
  if (!before.detail_every.is_ever() && now.detail_every.is_ever()) at_details_ = done_;
  if (!before.perf_every.is_ever() && now.perf_every.is_ever()) at_performance_ = done_;
  if (!before.log_epochs && now.log_epochs) at_epoch_ = done_;
  watch_device();
}

void Reporter::watch_device() {
  const StepSettings& now = training_.now;
  const bool is_mine = training_.rank() == 0 && !training_.device.is_host();
  const bool marks = is_mine && (now.detail_every.is_ever() || now.log_epochs);
  if (marks && marks_ == nullptr) marks_ = training_.device.marks();
  if (!marks && marks_ != nullptr) {
    training_.timer.mark_with(nullptr);
    marks_.reset();
  }
  const bool gauges = is_mine && now.gpu_every.is_ever();
  if (!gauges) gauges_.reset();
  if (gauges && gauges_ == nullptr)
    gauges_ = std::make_unique<GaugeReader>([&device = training_.device] { return device.gauges(); });
}

/// Marks cost some launches, so one step is marked for each line of details, and the second of an epoch: the
/// first one of a run is like no other.
void Reporter::before_step(bool details) {
  const PhaseTimes& now = training_.timer.times();
  if (in_step_) in_vain_ += now.since(at_step_);
  at_step_ = now;
  in_step_ = true;
  if (marks_ == nullptr) return;
  const bool for_epoch = training_.now.log_epochs && !of_epoch_ && done_.steps > at_epoch_.steps;
  training_.timer.mark_with(details || for_epoch ? marks_.get() : nullptr);
}

void Reporter::count(const StepOutcome& outcome) {
  last_ = outcome;
  done_.times = training_.timer.times().since(in_vain_);
  in_step_ = false;
  done_.tokens += static_cast<std::int64_t>(outcome.sums.tokens);
  ++done_.steps;
  of_step_ = training_.timer.take_marked();
  if (!of_step_) return;
  if (!of_epoch_) of_epoch_.emplace();
  *of_epoch_ += *of_step_;
}

void Reporter::write_step(const DueMetrics& due) {
  end_epoch();
  const auto reading = due.gauges ? newest_reading() : std::nullopt;
  const bool epoch = due.has_line && ended_;
  if (!due.of_task && !due.sets && !due.details && !due.performance && !due.collectives && !epoch && !reading)
    return;
  if (training_.rank() == 0) {
    Json line = line_of(due);
    if (reading) add_to(line, *reading);
    write(std::move(line));
  }
  if (epoch) ended_.reset();
  if (due.details) {
    at_details_ = done_;
    training_.device.forget_peak();
  }
  if (due.performance) at_performance_ = done_;
}

/// Where the last step has ended one, its sums wait for the next line.
void Reporter::end_epoch() {
  if (!training_.now.log_epochs) return ended_.reset();
  if (!has_ended_epoch()) return;
  auto sums = epoch_sums();
  begin_epoch();
  ended_ = std::move(sums);
}

void Reporter::begin_epoch() {
  ended_.reset();
  at_epoch_ = done_;
  memory_gib_ = memory_readings_ = 0;
  of_epoch_.reset();
}

std::optional<GaugeReading> Reporter::newest_reading() {
  if (gauges_ == nullptr) return std::nullopt;
  if (const std::string why = gauges_->take_refusal(); !why.empty())
    say("there are no metrics gpu/… (log.gpu_every): " + why);
  return gauges_->newest();
}

Json Reporter::line_of(const DueMetrics& due) {
  Json line = line_at(training_.position.step);
  if (due.of_task) add_to(line, light(*due.of_task));
  if (due.sets) add_to(line, sets(*due.sets));
  if (due.performance) add_to(line, performance());
  if (due.details) add_to(line, details());
  if (due.has_line && ended_) add_to(line, *ended_);
  if (due.collectives) line.update(*due.collectives);
  return line;
}

LightMetrics Reporter::light(const std::map<std::string, double>& of_task) const {
  return {static_cast<double>(last_.sums.loss) / static_cast<double>(last_.sums.tokens), last_.learning_rate,
          epoch(), of_task, last_.nonfinite};
}

Performance Reporter::performance() const {
  const StepSettings& now = training_.now;
  const double peak =
      now.peak_tflops > 0 ? now.peak_tflops : training_.device.peak_tflops(training_.precision()).value_or(0);
  return {done_.since(at_performance_), training_.task->declaration().unit, training_.task->flops_per_token(),
          peak * training_.world_size()};
}

Details Reporter::details() {
  StepTotals of = done_.since(at_details_);
  if (of_step_) of = {*of_step_, 1, 0};
  return {last_.grad_norm, of, memory()};
}

std::vector<SetLine> Reporter::sets(const std::vector<SetMetrics>& of_sets) const {
  std::vector<SetLine> sets;
  for (std::size_t set = 0; set < of_sets.size(); ++set) {
    const std::int64_t drawn = training_.position.sets[set].drawn;
    sets.push_back({training_.task->sets()[set].name, of_sets[set], drawn,
                    static_cast<double>(drawn) / training_.task->samples_per_epoch(static_cast<int>(set))});
  }
  return sets;
}

EpochSums Reporter::epoch_sums() {
  memory();
  StepTotals of = done_.since(at_epoch_);
  if (of_epoch_) of.times = of_epoch_->of_steps(of.times.steps());
  return {of, memory_readings_ > 0 ? memory_gib_ / memory_readings_ : 0};
}

/// Each reading counts for the epoch's mean: a reading at every step would cost more than it tells.
MemoryInUse Reporter::memory() {
  const MemoryInUse now{resident_bytes(), training_.device.memory()};
  const std::int64_t bytes = now.device ? now.device->allocated : now.resident;
  if (bytes > 0) {
    memory_gib_ += static_cast<double>(bytes) / (1 << 30);
    ++memory_readings_;
  }
  return now;
}

/// Of several data sets: passes over all of them, on average.
double Reporter::epoch() const {
  return static_cast<double>(training_.position.samples_drawn()) / training_.samples_per_epoch();
}

/// Whether the last step has. Where each ends one, or nearly each, their sums tell nothing.
bool Reporter::has_ended_epoch() const {
  const double samples = training_.samples_per_epoch();
  const auto drawn = static_cast<double>(training_.position.samples_drawn());
  const auto batch = static_cast<double>(training_.now.batch_size);
  if (samples < kFewestStepsOfAnEpoch * batch) return false;
  return std::floor(drawn / samples) > std::floor((drawn - batch) / samples);
}

void Reporter::warn_of_schedule() {
  const std::int64_t step = training_.position.step;
  const std::string text = training_.task->decides_learning_rate(step)
                               ? unused_schedule_warning(training_.options.settings, training_.task_name)
                               : warmup_warning(training_.now.schedule);
  if (!text.empty() && text != schedule_) warn(WarningKind::other, step, text);
  schedule_ = text;
}

void Reporter::tell_data() {
  std::string text;
  if (training_.device.is_host() && training_.options.settings.source("data.pin_memory") != "default")
    text = "data.pin_memory changes nothing on the processors";
  if (choice_of<CachePlace>(training_.options.settings, "data.cache") != CachePlace::none &&
      !training_.task->declaration().cacheable)
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
  const Precision used = training_.precision();
  std::string text = fmt::format("computes in {} on {}", used == Precision::bf16 ? "bf16" : "fp32",
                                 training_.device.description());
  if (used != now.precision)
    text += "; train.precision = \"bf16\" changes nothing: no instructions here multiply bf16";
  if (now.param_dtype == Precision::bf16) {
    text += "; matrices are kept in bf16, with fp32 master weights (train.param_dtype)";
    if (training_.device.computes_in(Precision::bf16) != Precision::bf16)
      text += "; slowly: no instructions here multiply bf16";
  }
  if (training_.device.is_host() && products_library() != kMkl) text += "; products by " + products_library();
  if (const std::string kernels = training_.task->runs_on(used); !kernels.empty()) text += "; " + kernels;
  if (now.gradient_checkpointing)
    text += training_.task->can_recompute()
                ? "; backward computes activations once more (train.gradient_checkpointing)"
                : "; train.gradient_checkpointing changes nothing: run.task = \"" + training_.task_name +
                      "\" keeps no activations";
  if (now.cuda_graph) {
    const std::string why = training_.cant_record(training_.sharding());
    text += why.empty() ? "; steps are recorded (train.cuda_graph)"
                        : "; train.cuda_graph changes nothing: " + why;
  }
  if (text != computing_) say(text);
  computing_ = text;
}

}  // namespace footplate
