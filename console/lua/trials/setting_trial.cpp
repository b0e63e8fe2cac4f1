#include <cmath>
#include <map>
#include <set>

#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
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

/// LoggedLines of metrics, one after the other.
class LoggedLines {
 public:
  explicit LoggedLines(Session& session)
      : session_(session), next_(ask(Json::object()).value("next", std::uint64_t{0})) {}

  Json next() {
    if (at_ == lines_.size()) {
      const Json answer = ask({{"since", next_}});
      next_ = answer.value("next", next_);
      lines_ = answer.value("lines", Json::array());
      at_ = 0;
    }
    return lines_.at(at_++);
  }

 private:
  Json ask(Json fields) {
    const Waiting waiting(session_.activity().clock);
    return session_.ask("wait_lines", std::move(fields));
  }

  Session& session_;
  std::uint64_t next_;
  Json lines_ = Json::array();
  std::size_t at_ = 0;
};

void add(StepWindow& window, const Json& line) {
  // Losses fall about straight over the logarithm of the step.
  const double place = std::log(std::max(1.0, line.value("step", 0.0)));
  for (const auto& [name, json] : line.items())
    if (name.find('/') != std::string::npos)
      if (const auto value = number_from_json(json); value && std::isfinite(*value))
        window.metrics[name].add(place, *value);
}

/// Whole lines of about `steps` steps that begin later than now. `abandon` says why to end early, or nothing.
StepWindow follow(Session& session, std::int64_t steps,
                  const std::function<std::string(const Json& line)>& abandon) {
  const std::int64_t now = session.look("status").value("step", std::int64_t{0});
  StepWindow window;
  LoggedLines lines(session);
  // A line tells of the steps since the one before it, so the first one isn't all of what is measured.
  do window.first = lines.next().value("step", std::int64_t{0});
  while (window.first < now);
  do {
    const Json line = lines.next();
    window.last = line.value("step", std::int64_t{0});
    add(window, line);
    window.abandoned = abandon(line);
  } while (window.abandoned.empty() && window.last < window.first + steps);
  return window;
}

double evaluate(Session& session, const std::string& metric) {
  const Json result = run_call(session, "eval.now", Json::object());
  const std::string field = metric.substr(metric.find('/') + 1);
  const auto value = number_from_json(result.value(field, Json()));
  if (!value)
    throw ScriptError("try: an evaluation gives no " + metric + "; it gives eval/loss and eval/seconds");
  return *value;
}

/// For keep_if, and as the result.
Json as_table(const StepWindow& window) {
  Json table = {{"first_step", window.first + 1}, {"last_step", window.last}};
  for (const auto& [name, samples] : window.metrics) table[name] = samples.mean().value;
  return table;
}

/// What the metric would have come to without the change, going by the steps before it.
Estimate expected(const SettingTrial& trial, const StepWindow& before, const StepWindow& after) {
  const Samples& was = before.metrics.at(trial.metric);
  const auto found = after.metrics.find(trial.metric);
  if (found == after.metrics.end()) return was.mean();
  const Samples& is = found->second;
  if (!has_trend(trial.metric)) return {was.mean().value, std::hypot(was.mean().error, is.mean().error)};
  const Estimate from = was.line_at(is.mean_place()), to = is.line_at(is.mean_place());
  return {from.value, std::hypot(from.error, to.error)};
}

bool is_better(const SettingTrial& trial, double value, double than) {
  const double by = trial.plan.better_by * std::abs(than);
  return more_is_better(trial.metric) ? value >= than + by : value <= than - by;
}

/// "trial of optim.lr_scale = 0.5: train/loss 2.31 -> 2.27 in 100 steps, 2.29 ± 0.01 without it by the steps
/// before, kept"
std::string outcome_text(const SettingTrial& trial, const Changes& changes, const Tried& tried) {
  const std::string head = "trial of " + text_of(changes) + ": ";
  const std::string end = tried.kept ? ", kept" : ", put back";
  const std::string abandoned = tried.after.value("abandoned", "");
  if (!abandoned.empty())
    return head + "abandoned at step " + tried.after["last_step"].dump() + ", " + abandoned + end;
  const double before = tried.before.value(trial.metric, 0.0), after = tried.after.value(trial.metric, 0.0);
  const double without = tried.after.value("expected", 0.0), error = tried.after.value("error", 0.0);
  const std::int64_t steps =
      tried.after["last_step"].get<std::int64_t>() - tried.after["first_step"].get<std::int64_t>() + 1;
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
      if (applies != Applies::step && applies != Applies::comm)
        throw ScriptError("try: " + change.name + " applies " + std::string(to_string(applies)) +
                          ", so that nothing can be measured of it; settings that count from a step on can "
                          "be tried");
      changes.emplace_back(change.name, to_json(change.value));
    }
  return changes;
}

SettingTrial trial_of(lua_State* state, const Json& arguments) {
  const Stage& staged = session_of(state).stage();
  SettingTrial trial;
  constexpr std::int64_t kLines = 10, kLeast = 50;
  const auto every = std::get<std::int64_t>(staged.value("log.every"));
  if (every == 0)
    throw ScriptError("try measures what is logged, and log.every is 0; log.every = 10 logs every 10 steps");
  trial.plan.steps = trial_steps(arguments, "steps", std::max(kLeast, kLines * every), kTry);
  trial.plan.better_by = better_by_of(arguments, 0, kTry);
  const Json metric = arguments.value("metric", Json(kLoss)), save = arguments.value("save", Json(false));
  if (!metric.is_string() || metric.get<std::string>().find('/') == std::string::npos)
    throw ScriptError(
        "try: metric is the name of one, as in metric = \"perf/step_ms\"; metrics() lists them");
  if (!save.is_boolean()) throw ScriptError("try: save is true or false");
  trial.metric = metric.get<std::string>();
  trial.save = save.get<bool>();
  trial.plan.has_keep_if = arguments.contains(kKeepIf);
  trial.has_abandon_if =
      has_function(state, kAbandonIf, "each line of metrics with the change, true to put it back at once");
  constexpr auto kFewest = static_cast<std::int64_t>(Samples::kFewest);
  if (!is_evaluations(trial.metric) && trial.plan.steps < kFewest * every)
    throw ScriptError("try: with log.every = " + std::to_string(every) + ", " +
                      std::to_string(trial.plan.steps) + " steps are fewer than " + std::to_string(kFewest) +
                      " lines, which tell nothing; steps = " + std::to_string(kFewest * every) +
                      " or more, or log oftener");
  return trial;
}

/// Why a line ends a trial; empty: it doesn't.
std::string reason_to_abandon(lua_State* state, bool has_abandon_if, const Json& line) {
  if (const auto loss = number_from_json(line.value(kLoss, Json(0.0))); loss && !std::isfinite(*loss))
    return "the loss isn't finite";
  return has_abandon_if && says_yes(state, kAbandonIf, {line}) ? "abandon_if said so" : "";
}

/// What the run logs, and for metrics of evaluations, what evaluations say.
class LoggedMeasurement final : public Measurement {
 public:
  /// `state` has the trial's table at stack index 1.
  LoggedMeasurement(lua_State* state, const SettingTrial& trial)
      : state_(state), session_(session_of(state)), trial_(trial), evaluates_(is_evaluations(trial.metric)) {}

  Json before() override {
    const double first = evaluates_ ? evaluate(session_, trial_.metric) : 0;
    window_ = follow(session_, trial_.plan.steps, [](const Json& /*line*/) { return std::string(); });
    if (!evaluates_ && !window_.metrics.contains(trial_.metric))
      throw ScriptError("try: " + trial_.metric + " isn't logged; metrics() lists what is");
    if (trial_.save) run_call(session_, "ckpt.save", {{"tag", "before-try"}});
    Json was = as_table(window_);
    if (evaluates_) {
      const double last = evaluate(session_, trial_.metric);
      was[trial_.metric] = last;
      next_ = last + (last - first);
    }
    return was;
  }

  Json after(const Json& /*before*/) override {
    const StepWindow window = follow(session_, trial_.plan.steps, [&](const Json& line) {
      return reason_to_abandon(state_, trial_.has_abandon_if, line);
    });
    Json is = as_table(window);
    if (!window.abandoned.empty()) is["abandoned"] = window.abandoned;
    Estimate without;
    if (!evaluates_) {
      without = expected(trial_, window_, window);
    } else if (window.abandoned.empty()) {
      without.value = next_;
      is[trial_.metric] = evaluate(session_, trial_.metric);
    }
    is["expected"] = without.value;
    is["error"] = without.error;
    return is;
  }

  bool is_better(const Json& /*before*/, const Json& after) const override {
    return lua::is_better(trial_, after.value(trial_.metric, 0.0), after["expected"].get<double>());
  }

  std::string text(const Changes& changes, const Tried& tried) const override {
    return outcome_text(trial_, changes, tried) +
           (trial_.save && !tried.kept ? "; ckpt.load(\"before-try\") goes back to before it" : "");
  }

 private:
  lua_State* state_;
  Session& session_;
  const SettingTrial& trial_;
  bool evaluates_;
  StepWindow window_;  ///< before the change
  double next_ = 0;    ///< what an evaluation would say after as many steps without it
};

int try_settings(lua_State* state) {
  const Json arguments =
      trial_arguments(state, {"set", "steps", "metric", "better_by", kKeepIf, kAbandonIf, "save"},
                      "what was before and after, true to keep it", kTry);
  SettingTrial trial = trial_of(state, arguments);
  session_of(state).begin_wait(kTry);
  trial.plan.changes = wanted_changes(state);
  LoggedMeasurement measurement(state, trial);
  push_tried(state, run_trial(state, trial.plan, measurement, measurement.before()),
             {{"metric", trial.metric}});
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
