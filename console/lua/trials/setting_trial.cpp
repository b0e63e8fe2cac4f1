#include <cmath>
#include <map>
#include <set>

#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
#include "console/lua/core/metric_names.h"
#include "console/lua/session/session.h"
#include "console/lua/session/stage_table.h"
#include "console/lua/trials/samples.h"
#include "console/lua/trials/trial.h"
#include "console/lua/trials/trial_functions.h"

// try{}: measures what the run logs, changes settings, measures again, and keeps the change or puts back what
// was before.

namespace footplate::lua {
namespace {

constexpr auto kTry = "try";
constexpr auto kAbandonIf = "abandon_if";
constexpr auto kLoss = "train/loss";

/// What one side of a trial has measured, over the steps after `first` up to and with `last`.
struct StepWindow {
  std::int64_t first = 0, last = 0;
  std::map<std::string, Samples> metrics;
  std::string abandoned;  ///< why it ended before its time
};

struct SettingTrial {
  TrialPlan plan;
  std::string metric = kLoss;
  std::string measured = kLoss;  ///< what lines are counted by: the metric, but for one of evaluations
  std::int64_t every = 0;        ///< steps between two of them; 0: by time
  bool save = false;
  bool has_abandon_if = false;
};

bool is_evaluations(const std::string& metric) {
  return metric.starts_with("eval/");
}

/// What falls, or rises, while a run trains, whatever is changed: it counts against where it would have come.
bool has_trend(const std::string& metric) {
  return metric.starts_with("train/") || is_evaluations(metric);
}

/// Of all others less is better.
bool more_is_better(const std::string& metric) {
  return metric == "perf/tokens_per_s" || metric == "perf/tflops" || metric == "perf/mfu";
}

/// Lines of metrics, one after the other.
class LineFeed {
 public:
  explicit LineFeed(Session& session) : session_(session), got_(ask(std::nullopt)) {}

  LoggedMetrics next() {
    if (at_ == got_.lines.size()) {
      got_ = ask(got_.next);
      at_ = 0;
      if (got_.lines.empty()) throw ScriptError("the console has told of no line", ErrorKind::failed);
    }
    return got_.lines[at_++];
  }

 private:
  LoggedLines ask(std::optional<std::uint64_t> since) {
    const Waiting waiting(session_.activity().clock);
    return session_.ask(request::WaitLines{since});
  }

  Session& session_;
  LoggedLines got_;
  std::size_t at_ = 0;
};

void add(StepWindow& window, const LoggedMetrics& line) {
  // Losses fall about straight over the logarithm of the step.
  const double place = std::log(std::max(1.0, static_cast<double>(line.step())));
  for (const auto& [name, json] : line.values.items())
    if (name.find('/') != std::string::npos)
      if (const auto value = number_from_json(json); value && std::isfinite(*value))
        window.metrics[name].add(place, *value);
}

/// Whole lines of about as many steps as the trial says, from a line with what is measured to another, which
/// begin later than now. `abandon` says why to end early, or nothing.
StepWindow follow(Session& session, const SettingTrial& trial,
                  const std::function<std::string(const LoggedMetrics& line)>& abandon) {
  const std::int64_t now = session.look(request::Status{}).step, steps = trial.plan.steps;
  const std::int64_t patience = std::max(steps, trial.every);  // where it isn't logged at all
  const auto ends = [&](const LoggedMetrics& line, std::int64_t at) {
    const bool has_it = line.values.contains(trial.measured);
    return line.step() >= at && (has_it || line.step() >= at + patience);
  };
  StepWindow window;
  LineFeed lines(session);
  // A line tells of the steps since the one before it, so the first one isn't all of what is measured.
  LoggedMetrics line;
  do line = lines.next();
  while (!ends(line, now));
  window.first = line.step();
  do {
    line = lines.next();
    window.last = line.step();
    add(window, line);
    window.abandoned = abandon(line);
    session.progress("measuring " + std::to_string(std::min(window.last - window.first, steps)) + " of " +
                     std::to_string(steps) + " steps");
  } while (window.abandoned.empty() && !ends(line, window.first + steps));
  return window;
}

double evaluate(Session& session, const std::string& metric) {
  const LoggedMetrics result{run_call(session, "eval.now", Json::object())};
  const auto value = result.number(metric.substr(metric.find('/') + 1).c_str());
  if (!value)
    throw ScriptError("try: an evaluation gives no " + metric + "; it gives eval/loss and eval/seconds");
  return *value;
}

/// What a side of a trial came to.
struct Side {
  std::int64_t first_step = 0, last_step = 0;
  std::map<std::string, double> metrics;
  std::string abandoned;             ///< why it ended before its time
  std::optional<Estimate> expected;  ///< after the change: of the metric, without it

  double of(const std::string& metric) const {
    const auto found = metrics.find(metric);
    return found == metrics.end() ? 0 : found->second;
  }
  double without_it() const { return expected ? expected->value : 0; }
};

Side side_of(const StepWindow& window) {
  Side side{window.first + 1, window.last, {}, window.abandoned, std::nullopt};
  for (const auto& [name, samples] : window.metrics) side.metrics[name] = samples.mean().value;
  return side;
}

/// For keep_if, and as the result.
Json as_table(const Side& side) {
  Json table = {{"first_step", side.first_step}, {"last_step", side.last_step}};
  for (const auto& [name, value] : side.metrics) table[name] = value;
  if (!side.abandoned.empty()) table["abandoned"] = side.abandoned;
  if (side.expected) table.update({{"expected", side.expected->value}, {"error", side.expected->error}});
  return table;
}

/// Of a difference of two. Not std::hypot, which asks for a newer C library than all else (2.35).
double error_of_both(const Estimate& a, const Estimate& b) {
  return std::sqrt(a.error * a.error + b.error * b.error);
}

/// What the metric would have come to without the change, going by the steps before it.
Estimate expected(const SettingTrial& trial, const StepWindow& before, const StepWindow& after) {
  const Samples& was = before.metrics.at(trial.metric);
  const auto found = after.metrics.find(trial.metric);
  if (found == after.metrics.end()) return was.mean();
  const Samples& is = found->second;
  if (!has_trend(trial.metric)) return {was.mean().value, error_of_both(was.mean(), is.mean())};
  const Estimate from = was.line_at(is.mean_place()), to = is.line_at(is.mean_place());
  return {from.value, error_of_both(from, to)};
}

bool is_better(const SettingTrial& trial, double value, double than) {
  const double by = trial.plan.better_by * std::abs(than);
  return more_is_better(trial.metric) ? value >= than + by : value <= than - by;
}

/// "trial of optim.lr_scale = 0.5: train/loss 2.31 -> 2.27 in 100 steps, 2.29 ± 0.01 without it by the steps
/// before, kept"
std::string outcome_text(const SettingTrial& trial, const Changes& changes, bool kept, const Side& was,
                         const Side& is) {
  const std::string head = "trial of " + changes_text(changes) + ": ";
  const std::string end = kept ? ", kept" : ", put back";
  if (!is.abandoned.empty())
    return head + "abandoned at step " + std::to_string(is.last_step) + ", " + is.abandoned + end;
  const double before = was.of(trial.metric), after = is.of(trial.metric);
  const double without = is.without_it(), error = is.expected ? is.expected->error : 0;
  const std::int64_t steps = is.last_step - is.first_step + 1;
  std::string text = head + trial.metric + " " + number_text(before) + " -> " + number_text(after) + " in " +
                     std::to_string(steps) + " steps, ";
  if (has_trend(trial.metric))
    text += number_text(without) + (error > 0 ? " ± " + number_text(error) : "") +
            " without it by the steps before";
  else
    text += std::string(after > before ? "+" : "") + number_text((after / before - 1) * 100) + " %" +
            (error > 0 ? " ± " + number_text(error / std::abs(before) * 100) : "");
  if (error > 0 && std::abs(after - without) < 2 * error) text += " (no more than noise)";
  return text + end;
}

/// What the table at 1 has in `set`, checked as a whole and asked about where a person sits there.
Changes wanted_changes(lua_State* state) {
  Session& session = session_of(state);
  if (lua_getfield(state, 1, "set") != LUA_TTABLE)
    throw ScriptError("try needs what to set: try{ set = { optim = { lr_scale = 0.5 } }, steps = 100 }");
  stage_table(state, -1, "");
  lua_pop(state, 1);
  Changes changes;
  for (const auto& order : session.orders().take_asked())
    for (const Change& change : order->order.changes) {
      const Applies applies = session.schema().setting(change.name)->applies;
      if (applies == Applies::fixed || applies == Applies::restart)
        throw ScriptError("try: " + change.name + " applies " + std::string(to_string(applies)) +
                          ", so that nothing can be measured of it; settings that count from a step on can "
                          "be tried");
      changes.emplace_back(change.name, to_json(change.value));
    }
  return changes;
}

/// Between two lines of a kind of metrics; 0: by time.
std::int64_t steps_between(const Stage& staged, const std::string& setting) {
  const Interval every = interval_of(staged.value(setting));
  if (!every.is_ever())
    throw ScriptError("try measures what is logged, and " + setting + " is 0; " + setting +
                      " = 10 logs every 10 steps");
  return every.steps;
}

SettingTrial trial_of(lua_State* state, const Json& arguments) {
  const Stage& staged = session_of(state).stage();
  SettingTrial trial;
  constexpr std::int64_t kLines = 10, kLeast = 50;
  const TableOptions options(arguments, kTry);
  constexpr auto kName = "is the name of one, as in metric = \"perf/step_ms\"; metrics() lists them";
  trial.metric = options.text("metric", kName).value_or(kLoss);
  if (trial.metric.find('/') == std::string::npos) options.refuse("metric", kName);
  if (!is_evaluations(trial.metric)) trial.measured = trial.metric;
  const std::string setting = interval_of_metric(trial.measured);
  const std::int64_t every = trial.every = steps_between(staged, setting);
  trial.plan.steps = trial_steps(options, "steps", std::max(kLeast, kLines * every));
  trial.plan.better_by = better_by_of(options, 0);
  trial.save = options.flag("save").value_or(false);
  trial.plan.has_keep_if = options.has(kKeepIf);
  trial.has_abandon_if = has_function(
      state, kAbandonIf, "the newest metrics at each line with the change, true to put it back at once");
  constexpr auto kFewest = static_cast<std::int64_t>(Samples::kFewest);
  if (!is_evaluations(trial.metric) && trial.plan.steps < kFewest * every)
    throw ScriptError("try: with " + setting + " = " + std::to_string(every) + ", " +
                      std::to_string(trial.plan.steps) + " steps are fewer than " + std::to_string(kFewest) +
                      " lines, which tell nothing; steps = " + std::to_string(kFewest * every) +
                      " or more, or log oftener");
  return trial;
}

/// Why the newest metrics end a trial; empty: they don't.
std::string reason_to_abandon(lua_State* state, bool has_abandon_if, const LoggedMetrics& newest) {
  if (const auto loss = newest.number(kLoss); loss && !std::isfinite(*loss)) return "the loss isn't finite";
  return has_abandon_if && says_yes(state, kAbandonIf, {newest.values}) ? "abandon_if said so" : "";
}

/// What the run logs, and for metrics of evaluations, what evaluations say.
class LoggedMeasurement final : public Measurement {
 public:
  /// `state` has the trial's table at stack index 1.
  LoggedMeasurement(lua_State* state, const SettingTrial& trial)
      : state_(state), session_(session_of(state)), trial_(trial), evaluates_(is_evaluations(trial.metric)) {}

  void measure_before() override {
    const double first = evaluates_ ? evaluate(session_, trial_.metric) : 0;
    window_ = follow(session_, trial_, [this](const LoggedMetrics& line) {
      newest_.values.update(line.values);
      return std::string();
    });
    if (!evaluates_ && !window_.metrics.contains(trial_.metric))
      throw ScriptError("try: " + trial_.metric + " isn't logged; metrics() lists what is");
    if (trial_.save) run_call(session_, "ckpt.save", {{"tag", "before-try"}});
    was_ = side_of(window_);
    if (!evaluates_) return;
    const double last = evaluate(session_, trial_.metric);
    was_.metrics[trial_.metric] = last;
    next_ = last + (last - first);
  }

  void measure_after() override {
    const StepWindow window = follow(session_, trial_, [this](const LoggedMetrics& line) {
      newest_.values.update(line.values);
      return reason_to_abandon(state_, trial_.has_abandon_if, newest_);
    });
    is_ = side_of(window);
    Estimate without;
    if (!evaluates_) {
      without = expected(trial_, window_, window);
    } else if (window.abandoned.empty()) {
      without.value = next_;
      is_.metrics[trial_.metric] = evaluate(session_, trial_.metric);
    }
    is_.expected = without;
  }

  bool was_abandoned() const override { return !is_.abandoned.empty(); }
  bool is_better() const override { return lua::is_better(trial_, is_.of(trial_.metric), is_.without_it()); }
  Json before() const override { return as_table(was_); }
  Json after() const override { return as_table(is_); }

  std::string text(const Changes& changes, bool kept) const override {
    return outcome_text(trial_, changes, kept, was_, is_) +
           (trial_.save && !kept ? "; ckpt.load(\"before-try\") goes back to before it" : "");
  }

 private:
  lua_State* state_;
  Session& session_;
  const SettingTrial& trial_;
  bool evaluates_;
  StepWindow window_;     ///< before the change
  LoggedMetrics newest_;  ///< of each metric, since measuring began
  Side was_, is_;
  double next_ = 0;  ///< what an evaluation would say after as many steps without it
};

int try_settings(lua_State* state) {
  const Json arguments =
      trial_arguments(state, {"set", "steps", "metric", "better_by", kKeepIf, kAbandonIf, "save"},
                      "what was before and after, true to keep it", kTry);
  SettingTrial trial = trial_of(state, arguments);
  session_of(state).begin_wait(kTry);
  trial.plan.changes = wanted_changes(state);
  LoggedMeasurement measurement(state, trial);
  measurement.measure_before();
  const Tried tried = run_trial(state, trial.plan, measurement);
  push_tried(state, measurement, tried, {{"metric", trial.metric}});
  return 1;
}

constexpr Registration kTryFunctions[] = {
    {.doc = {.name = "try",
             .role = Role::operate,
             .example = "try{ set = { optim = { lr_scale = 0.5 } }, steps = 100 }",
             .help = "measures, changes, measures again, and keeps the change or puts back what was; metric "
                     "(\"train/loss\"), better_by or keep_if = function(before, after) … end, abandon_if = "
                     "function(m) … end, save = true",
             .in_overview = true},
     .handler = bound<try_settings>},
};

}  // namespace

std::span<const Registration> try_functions() {
  return kTryFunctions;
}

}  // namespace footplate::lua
