#include <cmath>
#include <map>
#include <set>
#include <tuple>

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
constexpr auto kMeasure = "nccl.measure";
constexpr auto kProfile = "nccl.profile";
constexpr auto kAllReduce = "all_reduce";
constexpr std::int64_t kSteps = 50;
constexpr double kBetterBy = 0.02;

/// What nccl.measure finds in `steps` steps from now on.
NcclMeasurement measure(Session& session, std::int64_t steps) {
  const auto begun =
      ChunkConsole::result_as<MeasurementBegun>(kMeasure, run_call(session, kMeasure, {{"steps", steps}}));
  constexpr int kTold = 3;  // steps after the last one, by then it is told
  {
    const Waiting waiting(session.activity().clock);
    session.ask(request::WaitStep{begun.last + kTold, std::nullopt});
  }
  return ChunkConsole::result_as<NcclMeasurement>(kProfile, run_call(session, kProfile, Json::object()));
}

/// By which ways which sizes were done.
using Way = std::tuple<std::string, std::string, std::string, int, int, std::int64_t>;

/// What a measurement has read back.
std::set<Way> ways(const NcclMeasurement& measured) {
  std::set<Way> found;
  for (const MeasuredCollective& row : measured.collectives)
    found.emplace(row.collective, row.algorithm, row.protocol, row.channels, row.ranks, row.at_least);
  return found;
}

/// What NCCL tells of `steps` steps: the time of one, and how collectives were done.
class StepTime final : public Measurement {
 public:
  StepTime(Session& session, std::int64_t steps, double better_by)
      : session_(session), steps_(steps), better_by_(better_by) {}

  void measure_before() override { before_ = measure(session_, steps_); }
  void measure_after() override { after_ = measure(session_, steps_); }
  bool is_better() const override { return after_.step_ms <= before_.step_ms * (1 - better_by_); }
  Json before() const override { return to_json(before_); }
  Json after() const override { return to_json(after_); }

  const NcclMeasurement& measured_before() const { return before_; }
  /// The change was kept, and the next trial begins there.
  void go_on() { before_ = after_; }

  /// What, from and to how many milliseconds a step, and what came of it.
  std::string text(const Changes& changes, bool kept) const override {
    const double before = before_.step_ms, after = after_.step_ms;
    return "trial of " + changes_text(changes) + ": " + number_text(before) + " -> " + number_text(after) +
           " ms/step (" + (after > before ? "+" : "") + number_text((after / before - 1) * 100) + " %), " +
           (kept ? "kept" : "put back") +
           (ways(before_) == ways(after_) ? "; algorithms, protocols and channels were the same as before"
                                          : "");
  }

 private:
  Session& session_;
  std::int64_t steps_;
  double better_by_;
  NcclMeasurement before_, after_;
};

/// What a field of a rule is in its text; empty: nothing.
std::string word_of(const Json* value) {
  if (value == nullptr) return {};
  return value->is_string() ? value->get<std::string>() : value->dump();
}

/// What a rule's field adds to its text, behind the sizes.
std::string rule_words(const std::string& key, const std::string& word) {
  if (key == "algo" || key == "proto" || key == "collective") return " " + word;
  if (key == "channels") return " " + word + " channels";
  if (key == "min_size" || key == "max_size") return {};
  throw ScriptError(
      "set of nccl.try is a rule, of algo, proto, channels, collective, min_size and max_size, or "
      "settings; not both: " +
      key);
}

/// { algo = "tree", max_size = "1MiB" }: what isn't a setting's name makes a rule, before those there are.
Changes changes_of(Session& session, const Json* set) {
  if (set == nullptr || !set->is_object() || set->empty())
    throw ScriptError(
        "nccl.try needs what to set: nccl.try{ set = { algo = \"tree\", max_size = \"1MiB\" } }");
  const TableOptions options(*set);
  const bool ranged = options.has("min_size") || options.has("max_size");
  if (!ranged && !options.has("channels") && !options.has("collective")) {
    Changes changes;
    for (const auto& [key, value] : set->items())
      changes.emplace_back(key.starts_with("nccl.") ? key : "nccl." + key, value);
    return changes;
  }
  std::string words;
  for (const auto& [key, value] : set->items()) words += rule_words(key, word_of(&value));
  const std::string sizes =
      ranged ? word_of(options.find("min_size")) + ".." + word_of(options.find("max_size")) : "";
  const std::string others = std::get<std::string>(session.settings().value(kRules));
  return {{kRules, sizes + words + (others.empty() ? "" : "; " + others)}};
}

/// One way of doing collectives of `from` bytes to less than twice as many.
Changes candidate(const std::string& others, std::uint64_t from, const std::string& how) {
  const std::string rule = std::to_string(from) + ".." + std::to_string(2 * from - 1) + " " + how;
  return {{kRules, rule + (others.empty() ? "" : "; " + others)}};
}

/// Where the time goes: the sizes of all-reduces, those first that took longest in all.
std::vector<std::uint64_t> sizes_by_time(const NcclMeasurement& measured) {
  std::map<std::uint64_t, double> times;
  for (const MeasuredCollective& row : measured.collectives)
    if (row.collective == kAllReduce && row.at_least >= 0)
      times[static_cast<std::uint64_t>(row.at_least)] += row.mean_us * static_cast<double>(row.count);
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
  const TableOptions options(arguments, kName);
  const TrialPlan plan{changes_of(session, options.find("set")), trial_steps(options, "steps", kSteps),
                       better_by_of(options, kBetterBy), options.has(kKeepIf)};
  check_changes(session, plan.changes);
  session.begin_wait(kName);
  StepTime measurement(session, plan.steps, plan.better_by);
  measurement.measure_before();
  const Tried tried = run_trial(state, plan, measurement);
  push_tried(state, measurement, tried);
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
  const TableOptions options(arguments, kName);
  std::int64_t left = trial_steps(options, "budget_steps", kBudget);
  TrialPlan plan;
  plan.steps = trial_steps(options, "steps", std::max(kLeast, left / 20));
  plan.better_by = better_by_of(options, kBetterBy);
  if (left < 2 * plan.steps)
    throw ScriptError("nccl.tune: " + std::to_string(left) + " steps are too few for two measurements of " +
                      std::to_string(plan.steps) + "; give more budget_steps, or fewer steps");
  session.begin_wait(kName);
  StepTime measurement(session, plan.steps, plan.better_by);
  measurement.measure_before();
  left -= plan.steps;
  const double first_ms = measurement.measured_before().step_ms;
  Json tried = Json::array();
  for (const std::uint64_t size : sizes_by_time(measurement.measured_before())) {
    const std::string others = std::get<std::string>(session.settings().value(kRules));
    for (const char* way : kWays) {
      if (left < plan.steps) break;
      plan.changes = candidate(others, std::max<std::uint64_t>(size, 1), way);
      const Tried result = run_trial(state, plan, measurement);
      left -= plan.steps;
      tried.push_back(result.text);
      if (result.kept) measurement.go_on();
    }
  }
  const std::string rules = std::get<std::string>(session.settings().value(kRules));
  const double best_ms = measurement.measured_before().step_ms;
  const std::string text = "nccl.tune: " + std::to_string(tried.size()) + " trials, " +
                           number_text(first_ms) + " -> " + number_text(best_ms) +
                           " ms/step, nccl.rules = \"" + rules + "\"";
  note(session, text);
  push_listing(state, {{"tried", tried}, {"rules", rules}, {"before_ms", first_ms}, {"after_ms", best_ms}},
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
