#include <algorithm>
#include <cmath>

#include "console/client/render/render.h"
#include "console/lua/api/api.h"
#include "console/lua/api/branch_progress.h"
#include "console/lua/api/load_text.h"
#include "console/lua/core/bind.h"
#include "console/lua/core/convert.h"
#include "console/lua/core/listing.h"
#include "console/lua/core/table_options.h"
#include "console/lua/session/session.h"
#include "console/lua/trials/trial.h"
#include "protocol/fnv.h"
#include "protocol/store.h"

// branches{ steps = 60, { sched = { base_lr = 1e-3 } }, … }: trains each from the same checkpoint, and tells
// what came of it. Each begins with a ckpt.load, after which the job's script runs again from its top. So
// what has been done is kept in `store`, and branches{} goes on where it was.

namespace footplate::lua {
namespace {

constexpr auto kBranches = "branches";
constexpr auto kExample =
    "branches{ steps = 60, { sched = { base_lr = 3e-4 } }, { sched = { base_lr = 1e-3 } } }";
constexpr auto kEvalLoss = "eval/loss";
constexpr auto kLoad = "ckpt.load";
constexpr double kForEver_s = 1e9;

/// One of the table's numbered entries.
struct Branch {
  Json load = Json::object();  ///< what its ckpt.load gets besides `ref`
  std::string set;             ///< for people
};

struct BranchPlan {
  std::uint32_t of = 0;  ///< hash of all of it
  std::string key;       ///< of its progress in store
  std::optional<std::string> from;
  std::int64_t steps = 0;
  std::string metric;
  bool keep = false;
  std::vector<Branch> branches;
};

Branch branch_of(Session& session, const Json& entry, std::size_t number) {
  const std::string where = "branches: entry " + std::to_string(number);
  if (!entry.is_object() || entry.empty())
    throw ScriptError(where + " is a table of settings, as in " + kExample);
  Branch branch;
  Json set = entry;
  const TableOptions options(entry, where);
  if (const auto name = options.text("name", "is the name of the branch")) {
    branch.load["branch"] = *name;
    set.erase("name");
  }
  branch.load["set"] = std::move(set);
  spell_out_load(session.schema(), branch.load);
  const Json settings = Json::parse(branch.load["set"].get<std::string>());
  Changes changes;
  for (const auto& [name, value] : settings.items()) changes.emplace_back(name, value);
  branch.set = changes_text(changes);
  return branch;
}

std::optional<std::string> checkpoint_named(const TableOptions& options) {
  const Json* from = options.find("from");
  if (from == nullptr) return std::nullopt;
  if (from->is_number_integer()) return from->dump();
  return options.text("from", "is a checkpoint: a step, a tag, \"best\", \"latest\" or a path");
}

/// `count`: how many branches{} this script has called before.
BranchPlan plan_of(lua_State* state, std::int64_t count) {
  Session& session = session_of(state);
  luaL_checktype(state, 1, LUA_TTABLE);
  Json arguments = json_at(state, 1);
  BranchPlan plan;
  plan.of = fnv1a(arguments.dump());
  plan.key = std::string(1, kOwnInStore) + kBranches + "." + session.greeting().session + "." +
             std::to_string(count);
  if (arguments.is_array()) {  // nothing has a name
    Json named = Json::object();
    for (std::size_t i = 0; i < arguments.size(); ++i) named[std::to_string(i + 1)] = arguments[i];
    arguments = std::move(named);
  }
  const Json given = arguments;
  std::size_t number = 1;
  for (; given.contains(std::to_string(number)); ++number) {
    plan.branches.push_back(branch_of(session, given[std::to_string(number)], number));
    arguments.erase(std::to_string(number));
  }
  if (plan.branches.empty())
    throw ScriptError(std::string("branches needs settings to try, as in ") + kExample);
  check_arguments(arguments, {"from", "steps", "keep", "metric"}, kBranches);
  const TableOptions options(arguments, kBranches);
  const auto steps =
      options.number("steps", {.least = 1, .most = 1e9, .whole = true}, "is a number of steps, 1 or more");
  if (!steps)
    throw ScriptError(std::string("branches needs steps, how long each is trained, as in ") + kExample);
  plan.steps = static_cast<std::int64_t>(*steps);
  plan.from = checkpoint_named(options);
  const std::string& value = session.settings().string("eval.mode");
  const bool evaluates = value != "off";
  plan.metric = options.text("metric", "is the name of a metric, as in metric = \"train/loss\"")
                    .value_or(evaluates ? kEvalLoss : "train/loss");
  if (plan.metric.starts_with("eval/") && plan.metric != kEvalLoss)
    options.refuse("metric", "is \"eval/loss\" or a metric that is logged, as \"train/loss\"");
  if (options.has("keep") && options.find("keep")->is_string()) {
    if (options.text("keep", "") != "best") options.refuse("keep", "is \"best\", or left out");
    plan.keep = true;
  } else {
    plan.keep = options.flag("keep").value_or(false);
  }
  return plan;
}

/// One branches{} of a job.
class BranchRuns {
 public:
  BranchRuns(Session& session, BranchPlan plan) : session_(session), plan_(std::move(plan)) {}

  /// Does what is left of it. Returns once all is done, in the last start.
  std::vector<BranchResult> run() {
    read_progress();
    while (!progress_.done) {
      if (progress_.at == 0)
        begin();
      else if (session_.greeting().run.branch == progress_.left)
        load_branch();  // what was ordered came to nothing
      else
        measure_branch();
    }
    return progress_.results;
  }

 private:
  void read_progress() {
    const auto known = branch_progress_from(session_.look(request::Store{}), plan_.key);
    if (known && known->of == plan_.of) progress_ = *known;
    progress_.of = plan_.of;
  }

  void stage_progress() {
    const auto staged = session_.stage().store(plan_.key, to_json(progress_).dump(), /*keep=*/true);
    if (!staged) throw ScriptError(staged.error());
  }

  void begin() {
    if (plan_.from) {
      progress_.from = *plan_.from;
    } else {
      const SaveResult saved = ChunkConsole::result_as<SaveResult>(
          "ckpt.save", run_call(session_, "ckpt.save", {{"tag", "fork"}}));
      progress_.from = saved.path;
      progress_.step = saved.step;
      refuse_too_long();
    }
    progress_.at = 1;
    load_branch();
  }

  /// The run would end within a branch.
  void refuse_too_long() const {
    const std::int64_t last = session_.settings().integer("train.steps");
    if (progress_.step + plan_.steps < last) return;
    throw ScriptError(
        "branches: from step " + std::to_string(progress_.step) + " on, " + std::to_string(plan_.steps) +
        " steps take the run to its end (train.steps = " + std::to_string(last) + "); set train.steps to " +
        std::to_string(progress_.step + plan_.steps + 1) + " or more, or steps lower");
  }

  /// Ends this start of the run.
  [[noreturn]] void load(const Json& arguments) {
    progress_.left = session_.greeting().run.branch;
    stage_progress();
    session_.stage().force(kLoad);
    run_call(session_, kLoad, arguments);
    const Waiting waiting(session_.activity().clock);
    session_.ask(request::WaitSeconds{kForEver_s});  // ends with the run, by an error
    throw ScriptError("branches: ckpt.load has not ended this start of the run", ErrorKind::failed);
  }

  [[noreturn]] void load_branch() {
    const auto count = static_cast<std::int64_t>(plan_.branches.size());
    const auto place = static_cast<std::size_t>(progress_.at - 1);
    Json arguments = progress_.at <= count ? plan_.branches[place].load : Json::object();
    arguments["ref"] = progress_.from;
    arguments["reason"] = "branch " + std::to_string(progress_.at) + " of branches{}";
    load(arguments);
  }

  /// This start of the run is the branch's.
  void measure_branch() {
    if (progress_.step == 0) {
      progress_.step = session_.greeting().run.began;
      progress_.from = std::to_string(progress_.step);  // "best" and "latest" are others in a branch
      refuse_too_long();
      stage_progress();
      session_.orders().commit();
    }
    const auto& branch = plan_.branches.at(static_cast<std::size_t>(progress_.at - 1));
    progress_.results.push_back(measured(branch));
    if (progress_.at < static_cast<std::int64_t>(plan_.branches.size())) {
      ++progress_.at;
      load_branch();
    }
    end();
  }

  /// Evaluated and saved exactly at its last step.
  BranchResult measured(const Branch& branch) {
    const bool evaluates = plan_.metric == kEvalLoss;
    const std::int64_t last = progress_.step + plan_.steps;
    Stage& stage = session_.stage();
    stage.begin_at(last);
    if (evaluates) stage_call("eval.now", Json::object());
    stage_call("ckpt.save", {{"tag", "branch-" + std::to_string(progress_.at)}});
    const auto order = stage.finish_at();
    const auto result_of = [&](int call) { return session_.wait_call(*order, call, std::nullopt); };
    BranchResult result{session_.greeting().run.branch, branch.set, last, plan_.metric, {}, {}, false};
    if (evaluates) result.value = LoggedMetrics{result_of(0)}.number("loss");
    const SaveResult saved = ChunkConsole::result_as<SaveResult>("ckpt.save", result_of(evaluates ? 1 : 0));
    result.checkpoint = saved.path;
    result.step = saved.step;
    if (!evaluates) result.value = session_.look(request::Metrics{}).number(plan_.metric.c_str());
    if (result.value && !std::isfinite(*result.value)) result.value.reset();
    return result;
  }

  void stage_call(const char* action, const Json& arguments) {
    if (const auto staged = session_.stage().call(action, arguments); !staged)
      throw ScriptError(staged.error());
  }

  /// The run goes on from the best one, or from where all began.
  void end() {
    BranchResult* best = nullptr;
    for (BranchResult& result : progress_.results)
      if (result.value && (best == nullptr || *result.value < *best->value)) best = &result;
    const bool keeps = plan_.keep && best != nullptr;
    if (keeps) best->kept = true;
    note(session_, summary());
    progress_.done = true;
    load({{"ref", keeps ? best->checkpoint : progress_.from}, {"reason", "the end of branches{}"}});
  }

  std::string summary() const {
    std::string text = "branches from step " + std::to_string(progress_.step) + ", " +
                       std::to_string(plan_.steps) + " steps each, " + plan_.metric + ":";
    for (const BranchResult& result : progress_.results)
      text += (text.back() == ':' ? " " : ", ") + result.set + " " +
              (result.value ? number_text(*result.value) : "not finite") + (result.kept ? " (kept)" : "");
    return text;
  }

  Session& session_;
  BranchPlan plan_;
  BranchProgress progress_;
};

int branches(lua_State* state) {
  Session& session = session_of(state);
  if (!session.greeting().trusted() || session.activity().mode == Activity::Mode::handler)
    throw ScriptError(
        "branches goes back to a checkpoint for each branch, which a job script lives through and a session "
        "or a "
        "rule doesn't: write it into a file, and footplate run CONFIG --script FILE");
  constexpr auto kCount = "footplate.branches";  // in the registry: how often the script has called it
  lua_getfield(state, LUA_REGISTRYINDEX, kCount);
  const std::int64_t count = lua_tointeger(state, -1) + 1;
  lua_pop(state, 1);
  lua_pushinteger(state, count);
  lua_setfield(state, LUA_REGISTRYINDEX, kCount);
  BranchPlan plan = plan_of(state, count);
  session.begin_wait(kBranches);
  const std::vector<BranchResult> results = BranchRuns(session, std::move(plan)).run();
  std::vector<std::vector<std::string>> rows{{"branch", "set", "step", results.front().metric, ""}};
  for (const BranchResult& result : results)
    rows.push_back({result.branch, result.set, std::to_string(result.step),
                    result.value ? number_text(*result.value) : "not finite", result.kept ? "kept" : ""});
  push_listing(state, list_of(results), without_newline(table(rows)));
  return 1;
}

constexpr Registration kBranchFunctions[] = {
    {.doc =
         {.name = "branches",
          .role = Role::admin,
          .example = "branches{ from = \"fork\", steps = 60, { sched = { base_lr = 1e-3 } }, … }",
          .help =
              "in a job script: trains each from the same checkpoint and returns what came of it; without "
              "from it saves one; metric (\"eval/loss\"), keep = \"best\" goes on from the best, else from "
              "where all began",
          .in_overview = true},
     .handler = bound<branches>},
};

}  // namespace

std::span<const Registration> branch_functions() {
  return kBranchFunctions;
}

}  // namespace footplate::lua
