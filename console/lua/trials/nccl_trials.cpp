#include <cmath>
#include <set>

#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
#include "console/lua/session/session.h"
#include "console/lua/trials/trial.h"
#include "console/lua/trials/trial_functions.h"
#include "protocol/nccl/tuning_rules.h"

// nccl.try{} and nccl.tune{}: measure, change, measure again, and keep the change or put back what was
// before.

namespace footplate::lua {
namespace {

constexpr auto kRules = "nccl.rules";
constexpr std::int64_t kSteps = 50;
constexpr double kBetterBy = 0.02;

double step_ms(const Json& measured) {
  return measured.value("step_ms", 0.0);
}

/// What nccl.measure finds in `steps` steps from now on.
Json measure(Session& session, std::int64_t steps) {
  const Json begun = run_call(session, "nccl.measure", {{"steps", steps}});
  constexpr int kTold = 3;  // steps after the last one, by then it is told
  {
    const Waiting waiting(session.activity().clock);
    session.ask("wait_step", {{"step", begun.value("last", std::int64_t{0}) + kTold}});
  }
  return run_call(session, "nccl.profile", Json::object());
}

/// What a measurement has read back: by which ways which sizes were done.
std::set<std::string> ways(const Json& measured) {
  std::set<std::string> found;
  for (Json row : measured.value("collectives", Json::array())) {
    for (const char* time : {"count", "bytes", "mean_us", "least_us", "most_us", "bus_gb_per_s"})
      row.erase(time);
    found.insert(row.dump());
  }
  return found;
}

/// What NCCL tells of `steps` steps: the time of one, and how collectives were done.
class NcclMeasurement final : public Measurement {
 public:
  NcclMeasurement(Session& session, std::int64_t steps, double better_by)
      : session_(session), steps_(steps), better_by_(better_by) {}

  Json before() override { return measure(session_, steps_); }
  Json after(const Json& /*before*/) override { return measure(session_, steps_); }
  bool is_better(const Json& before, const Json& after) const override {
    return step_ms(after) <= step_ms(before) * (1 - better_by_);
  }

  /// What, from and to how many milliseconds a step, and what came of it.
  std::string text(const Changes& changes, const Tried& tried) const override {
    const double before = step_ms(tried.before), after = step_ms(tried.after);
    return "trial of " + text_of(changes) + ": " + number_text(before) + " -> " + number_text(after) +
           " ms/step (" + (after > before ? "+" : "") + number_text((after / before - 1) * 100) + " %), " +
           (tried.kept ? "kept" : "put back") +
           (ways(tried.before) == ways(tried.after)
                ? "; algorithms, protocols and channels were the same as before"
                : "");
  }

 private:
  Session& session_;
  std::int64_t steps_;
  double better_by_;
};

/// { algo = "tree", max_size = "1MiB" }: what isn't a setting's name makes a rule, before those there are.
Changes changes_of(Session& session, const Json& set) {
  if (!set.is_object() || set.empty())
    throw ScriptError(
        "nccl.try needs what to set: nccl.try{ set = { algo = \"tree\", max_size = \"1MiB\" } }");
  const bool sized = set.contains("min_size") || set.contains("max_size") || set.contains("channels") ||
                     set.contains("collective");
  Changes changes;
  std::string words, sizes;
  for (const auto& [key, value] : set.items()) {
    const std::string word = value.is_string() ? value.get<std::string>() : value.dump();
    if (!sized) {
      changes.emplace_back(key.starts_with("nccl.") ? key : "nccl." + key, value);
    } else if (key == "algo" || key == "proto" || key == "collective") {
      words += " " + word;
    } else if (key == "channels") {
      words += " " + word + " channels";
    } else if (key != "min_size" && key != "max_size") {
      throw ScriptError(
          "set of nccl.try is a rule, of algo, proto, channels, collective, min_size and max_size, or "
          "settings; not both: " +
          key);
    }
  }
  if (!sized) return changes;
  const auto size = [&](const char* key) {
    const Json value = set.value(key, Json(""));
    return value.is_string() ? value.get<std::string>() : value.dump();
  };
  if (set.contains("min_size") || set.contains("max_size"))
    sizes = size("min_size") + ".." + size("max_size");
  const std::string others = std::get<std::string>(session.settings().value(kRules));
  changes.emplace_back(kRules, sizes + words + (others.empty() ? "" : "; " + others));
  return changes;
}

/// One way of doing collectives of `from` bytes to less than twice as many.
Changes candidate(const std::string& others, std::uint64_t from, const std::string& how) {
  const std::string rule = std::to_string(from) + ".." + std::to_string(2 * from - 1) + " " + how;
  return {{kRules, rule + (others.empty() ? "" : "; " + others)}};
}

/// Where the time goes: the sizes of all-reduces, those first that took longest in all.
std::vector<std::uint64_t> sizes_by_time(const Json& measured) {
  std::map<std::uint64_t, double> times;
  for (const Json& row : measured.value("collectives", Json::array()))
    if (row.value("collective", "") == "all_reduce")
      times[row.value("at_least", std::uint64_t{0})] += row.value("mean_us", 0.0) * row.value("count", 0.0);
  std::vector<std::uint64_t> sizes;
  for (const auto& [size, time] : times) sizes.push_back(size);
  std::sort(sizes.begin(), sizes.end(), [&](auto a, auto b) { return times[a] > times[b]; });
  return sizes;
}

int nccl_try(lua_State* state) {
  constexpr auto kName = "nccl.try";
  Session& session = session_of(state);
  const Json arguments = trial_arguments(state, {"set", "steps", kKeepIf, "better_by"},
                                         "what was measured before and after, true to keep it", kName);
  const TrialPlan plan{changes_of(session, arguments.value("set", Json())),
                       trial_steps(arguments, "steps", kSteps, kName),
                       better_by_of(arguments, kBetterBy, kName), arguments.contains(kKeepIf)};
  check_changes(session, plan.changes);
  session.begin_wait(kName);
  NcclMeasurement measurement(session, plan.steps, plan.better_by);
  push_tried(state, run_trial(state, plan, measurement, measurement.before()));
  return 1;
}

int nccl_tune(lua_State* state) {
  constexpr auto kName = "nccl.tune";
  constexpr std::int64_t kBudget = 1000;
  constexpr std::int64_t kLeast = 10;  ///< steps of a trial, below which they tell nothing
  constexpr std::array kWays{"ring simple", "ring ll128", "ring ll", "tree simple",
                             "tree ll128",  "tree ll",    "nvls"};
  Session& session = session_of(state);
  const Json arguments = lua_isnoneornil(state, 1) ? Json::object() : json_at(state, 1);
  if (!arguments.is_object() && !arguments.empty())
    throw ScriptError("nccl.tune takes named arguments: nccl.tune{ budget_steps = 1000 }");
  check_arguments(arguments, {"budget_steps", "steps", "better_by"}, kName);
  std::int64_t left = trial_steps(arguments, "budget_steps", kBudget, kName);
  TrialPlan plan;
  plan.steps = trial_steps(arguments, "steps", std::max(kLeast, left / 20), kName);
  plan.better_by = better_by_of(arguments, kBetterBy, kName);
  if (left < 2 * plan.steps)
    throw ScriptError("nccl.tune: " + std::to_string(left) + " steps are too few for two measurements of " +
                      std::to_string(plan.steps) + "; give more budget_steps, or fewer steps");
  session.begin_wait(kName);
  NcclMeasurement measurement(session, plan.steps, plan.better_by);
  Json best = measurement.before();
  left -= plan.steps;
  const double first_ms = step_ms(best);
  Json tried = Json::array();
  for (const std::uint64_t size : sizes_by_time(best)) {
    const std::string others = std::get<std::string>(session.settings().value(kRules));
    for (const char* way : kWays) {
      if (left < plan.steps) break;
      plan.changes = candidate(others, std::max<std::uint64_t>(size, 1), way);
      const Tried result = run_trial(state, plan, measurement, best);
      left -= plan.steps;
      tried.push_back(result.text);
      if (result.kept) best = result.after;
    }
  }
  const std::string rules = std::get<std::string>(session.settings().value(kRules));
  const std::string text = "nccl.tune: " + std::to_string(tried.size()) + " trials, " +
                           number_text(first_ms) + " -> " + number_text(step_ms(best)) +
                           " ms/step, nccl.rules = \"" + rules + "\"";
  note(session, text);
  push_listing(state,
               {{"tried", tried}, {"rules", rules}, {"before_ms", first_ms}, {"after_ms", step_ms(best)}},
               text);
  return 1;
}

constexpr Registration kNcclTrialFunctions[] = {
    {.doc = {.name = "nccl.try",
             .role = Role::admin,
             .example = "nccl.try{ set = { algo = \"tree\", max_size = \"1MiB\" }, steps = 50, keep_if = "
                        "function(before, after) … end }",
             .help = "measures, changes, measures again, and keeps the change or puts back what was; without "
                     "keep_if it keeps what is faster by better_by (0.02: 2 %)"},
     .handler = bound<nccl_try>},
    {.doc = {.name = "nccl.tune",
             .role = Role::admin,
             .example = "nccl.tune{ budget_steps = 1000 }",
             .help =
                 "tries algorithms and protocols for the sizes that take longest, and keeps what is faster"},
     .handler = bound<nccl_tune>},
};

}  // namespace

std::span<const Registration> nccl_trial_functions() {
  return kNcclTrialFunctions;
}

}  // namespace footplate::lua
