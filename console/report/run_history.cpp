#include "console/report/run_history.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>

#include "console/report/lineage.h"
#include "protocol/event_line.h"
#include "protocol/value.h"
#include "protocol/words.h"
#include "run_files/line_files.h"

namespace footplate::report {
namespace {

constexpr std::string_view kPhase = "perf/";
constexpr std::string_view kMilliseconds = "_ms";
constexpr std::size_t kLongestText = 400;
constexpr std::string_view kLearningRate = "optim.lr";  ///< is computed

/// "forward" of "perf/forward_ms"; "" where the metric is no phase's.
std::string phase_of(const std::string& metric) {
  if (!metric.starts_with(kPhase) || !metric.ends_with(kMilliseconds) || metric == "perf/step_ms") return "";
  return metric.substr(kPhase.size(), metric.size() - kPhase.size() - kMilliseconds.size());
}

/// An argument, as it is in a cell of a table.
std::string shown_argument(const Json& value) {
  if (const auto number = number_from_json(value)) return rounded(*number);
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// ckpt.save(tag = a): what was left to its default isn't in it.
std::string shown_call(const Call& call) {
  std::string given;
  for (const auto& [name, value] : call.arguments.items())
    if (!value.is_null() && !(value.is_string() && value.get_ref<const std::string&>().empty()))
      given += (given.empty() ? "" : ", ") + name + " = " + shown_argument(value);
  return call.action + "(" + given + ")";
}

/// Training goes on as before, whatever their values. After ckpt.load it doesn't, but that is told by the
/// start that follows.
bool is_quiet(const std::string& setting) {
  return setting.starts_with("log.") || setting.starts_with("eval.") || setting.starts_with("ckpt.");
}
bool is_quiet(const Call& call) {
  return call.action.starts_with("eval.") || call.action == "run.note" || call.action.starts_with("ckpt.");
}

bool moves_learning_rate(const std::string& setting) {
  return setting.starts_with("sched.") || setting.starts_with("optim.lr");
}

MomentKind kind_of(const std::vector<Moved>& moved, const std::vector<Call>& calls) {
  if (std::any_of(moved.begin(), moved.end(), [](const Moved& one) { return moves_learning_rate(one.name); }))
    return MomentKind::learning_rate;
  const bool quiet =
      std::all_of(moved.begin(), moved.end(), [](const Moved& one) { return is_quiet(one.name); }) &&
      std::all_of(calls.begin(), calls.end(), [](const Call& call) { return is_quiet(call); });
  return quiet ? MomentKind::quiet : MomentKind::change;
}

/// "base_lr 0.003 → 0.01", of the first that moves the learning rate; of what is computed only where nothing
/// else does.
std::string label_of(const std::vector<SettingMove>& moves) {
  const SettingMove* best = nullptr;
  for (const SettingMove& move : moves)
    if (moves_learning_rate(move.name) && (best == nullptr || best->name == kLearningRate)) best = &move;
  if (best == nullptr) return "";
  const auto dot = best->name.rfind('.');
  return best->name.substr(dot + 1) + " " + shown(best->before) + " → " + shown(best->after);
}

class Reader {
 public:
  explicit Reader(RunHistory& history) : history_(history), lineage_(history.record.directory) {}

  void metrics(const MetricsLine& line) {
    if (!line.step) return;
    if (line.time) add_time(line.start, *line.time);
    Stretch& stretch = stretch_of(line);
    for (const auto& [name, json] : line.metrics.values.items()) {
      if (name.find('/') == std::string::npos) continue;
      const auto value = number_from_json(json);
      const bool other = name == kEvalLoss && is_of_other_batches(line.metrics);
      if (value) stretch.metrics[other ? kOtherEvaluations : name].add(*line.step, *value);
    }
    if (line.metrics.values.contains("perf/forward_ms")) add_phases(line.metrics, *line.step);
    add_evaluation(line.metrics);
  }

  void event(const Event& event) {
    time_ = event.time;
    std::visit([this](const auto& data) { take(data); }, event.data);
  }

  void start(const StartRecord& start) {
    history_.starts.push_back(start);
    lineage_.start(start);
    start_steps_[start.start] = static_cast<double>(start.step);
  }

  /// Once all has been read.
  void finish() {
    lineage_.settle();
    history_.branches = lineage_.branches();
    history_.configured = lineage_.configured();
    history_.now = lineage_.now();
    for (const StartRecord& start : history_.starts) went_on(start);
    find_kept();
    for (Branch& branch : history_.branches) sum_up(branch);
    for (auto* list : {&history_.changes, &history_.happenings})
      for (Moment& moment : *list)
        if (moment.branch.empty()) moment.branch = lineage_.branch_at(moment.time);
    std::stable_sort(history_.happenings.begin(), history_.happenings.end(),
                     [](const Moment& a, const Moment& b) { return a.time < b.time; });
  }

 private:
  static constexpr auto kEvalLoss = "eval/loss";
  static constexpr auto kBestLoss = "eval/best";

  /// Cut short; or better than the best one, which it would be if it was one of them.
  static bool is_of_other_batches(const LoggedMetrics& metrics) {
    const auto loss = metrics.number(kEvalLoss), best = metrics.number(kBestLoss);
    return metrics.number("eval/partial").has_value() || (loss && best && *loss < *best);
  }

  void went_on(const StartRecord& start) {
    if (start.start <= 1 && start.resumed.empty()) return;
    const auto given = lineage_.given(start.start);
    std::vector<std::string> with;
    for (const SettingMove& move : given) with.push_back(shown(move));
    Moment moment{start.time,
                  start.step,
                  "start",
                  "start " + std::to_string(start.start) + " goes on from " + start.resumed +
                      (start.loaded ? " by ckpt.load" : "") + (with.empty() ? "" : ", with " + join(with)),
                  MomentKind::start,
                  start.branch,
                  label_of(given)};
    if (start.loaded) moment.label = start.branch;
    add(history_.happenings, std::move(moment));
  }

  /// What the run kept is its newest branch, and of each ancestor what was trained before the next one began.
  /// The lines alone don't tell: somebody may have gone on from a later checkpoint than the time before.
  void find_kept() {
    auto& all = history_.stretches;
    if (all.empty()) return;
    std::map<std::string, double> until;
    double end = kNever;
    for (std::string name = all.back().branch; until.emplace(name, end).second;) {
      const auto branch = std::ranges::find(history_.branches, name, &Branch::name);
      if (branch == history_.branches.end()) return;  // there is no record of it
      if (branch->parent.empty()) break;
      for (const Stretch& stretch : all)
        if (stretch.branch == name) end = std::min(end, stretch.first_step);
      name = branch->parent;
    }
    for (Stretch& stretch : all) {
      const auto kept = until.find(stretch.branch);
      stretch.left_at =
          kept == until.end() ? stretch.first_step : std::min(stretch.repeated_at, kept->second);
    }
  }

  void sum_up(Branch& branch) const {
    for (const Stretch& stretch : history_.stretches) {
      if (stretch.branch != branch.name) continue;
      branch.last_step = std::max(branch.last_step, stretch.last_step);
      branch.left_at = stretch.left_at;
      const auto find = [&](const char* name) {
        const auto found = stretch.metrics.find(name);
        return found == stretch.metrics.end() || found->second.pieces().empty() ? nullptr : &found->second;
      };
      if (const Series* loss = find("train/loss")) branch.train_loss = loss->recent_mean();
      if (const Series* loss = find(kEvalLoss)) branch.eval_loss = loss->last();
      if (const Series* best = find(kBestLoss)) branch.best_loss = best->last();
    }
    // The checkpoint that it began with knew it.
    if (std::isnan(branch.best_loss) && !branch.parent.empty())
      if (const auto best =
              history_.last_value(branch.parent, kBestLoss, static_cast<double>(branch.first_step)))
        branch.best_loss = best->second;
  }

  void happened(Topic topic, std::optional<std::int64_t> step, std::string text, bool failure = false) {
    add(history_.happenings, {time_, step.value_or(-1), std::string(to_string(topic)), std::move(text),
                              failure ? MomentKind::failure : MomentKind::quiet});
  }

  void take(const SaveResult& result) {
    history_.phase_s["saving"] += result.waited_s.value_or(result.seconds);
    if (!result.reason.empty()) happened(Topic::ckpt, result.step, result.reason, true);
  }
  void take(const EvaluationResult& result) {
    if (result.failed) happened(Topic::eval, result.step, result.reason, true);
  }
  void take(const RankChange& change) {
    const bool failure = change.state == RankChangeKind::lost || change.state == RankChangeKind::killed;
    happened(Topic::rank, change.step, *event_line(change), failure);
  }
  void take(const Warning& warning) { happened(Topic::warn, warning.step, warning.text); }
  void take(const Note& note) { happened(Topic::note, note.step, note.text); }
  void take(const RunResult& result) {
    happened(Topic::end, result.step,
             result.reason + ", exit code " + std::to_string(result.code) +
                 (result.note.empty() ? "" : " (" + result.note + ")"));
  }
  void take(const CallReport& report) {
    if (report.state != CallState::failed) return;
    const auto& told = history_.happenings;
    if (!told.empty() && told.back().text == report.error) return;  // by what was called
    const auto step = order_steps_.find(report.order);
    happened(Topic::call, step == order_steps_.end() ? std::nullopt : std::optional(step->second),
             report.action + " failed: " + report.error, true);
  }
  /// The rest of what happens is in the metrics, or concerns nobody later.
  template <class Data>
  void take(const Data& /*data*/) {}

  void take(const OrderReport& report) {
    if (report.state == OrderState::refused || report.state == OrderState::aborted)
      return add(history_.happenings,
                 {time_, -1, "order " + std::to_string(report.id),
                  std::string(to_string(report.state)) + ": " + report.error, MomentKind::quiet});
    if (report.state == OrderState::committed && report.step) order_steps_[report.id] = *report.step;
    if (report.state != OrderState::applied) return;
    const Order order = report.order.value_or(Order{});
    Applied applied = report.applied.value_or(Applied{});
    if (applied.id == 0) applied.id = report.id;
    Moment moment{time_, report.applied ? applied.step : -1, order.user, "",
                  kind_of(applied.moved, order.calls)};
    if (moment.who.empty() || order.session.starts_with("rule"))
      moment.who += (moment.who.empty() ? "" : ", ") + order.session;
    std::vector<std::string> parts;
    std::vector<SettingMove> moves;
    for (const Moved& moved : applied.moved) {
      moves.push_back({moved.name, moved.before, moved.after, applied.step});
      parts.push_back(shown(moves.back()));
    }
    for (const Call& call : order.calls) parts.push_back(shown_call(call));
    moment.text = join(parts);
    moment.label = label_of(moves);
    lineage_.order(applied, time_);
    if (!moment.text.empty()) add(history_.changes, std::move(moment));
  }

  Stretch& stretch_of(const MetricsLine& line) {
    auto& all = history_.stretches;
    const double step = *line.step;
    if (!all.empty() && all.back().branch == line.branch) {
      // One beside training (eval.async) tells of a step that is over, and nobody went back.
      const bool beside = !line.metrics.is_of_training() && line.start != 0 && line.start == start_;
      if (step >= all.back().last_step || beside) {
        all.back().last_step = std::max(all.back().last_step, step);
        start_ = line.start;
        return all.back();
      }
    }
    const bool in_place = line.start != 0 && line.start == start_;  // from a checkpoint, after a lost rank
    start_ = line.start;
    // What was trained beyond here is another's past.
    for (Stretch& earlier : all) {
      earlier.left_at = std::min(earlier.left_at, step);
      if (earlier.branch == line.branch) earlier.repeated_at = std::min(earlier.repeated_at, step);
    }
    const auto began = start_steps_.find(line.start);
    const bool known = began != start_steps_.end() && began->second <= step;
    const double steps = line.metrics.values.contains("perf/forward_ms") ? steps_ : 1;
    last_logged_ = in_place ? step - steps : known ? began->second : step;
    all.push_back({line.branch, step, step});
    return all.back();
  }

  /// What is logged is of the steps since they were last.
  void add_phases(const LoggedMetrics& line, double step) {
    steps_ = std::max(1.0, step - last_logged_);
    last_logged_ = step;
    history_.trained_steps += steps_;
    for (const auto& [name, json] : line.values.items())
      if (const std::string phase = phase_of(name); !phase.empty())
        if (const auto value = number_from_json(json); value && std::isfinite(*value))
          history_.phase_s[phase] += *value * steps_ / 1000;
  }

  /// Beside training it costs what training has waited for it.
  void add_evaluation(const LoggedMetrics& line) {
    const auto seconds = line.number("eval/seconds"), waited = line.number("eval/waited_s");
    if (const auto cost = waited ? waited : seconds; cost && std::isfinite(*cost))
      history_.phase_s["evaluation"] += *cost;
  }

  /// Lines of a start come one after the other; before and after it the run stood still.
  void add_time(std::int64_t start, double time) {
    const double last = last_times_.try_emplace(start, time).first->second;
    history_.trained_s += std::max(0.0, time - last);
    last_times_[start] = std::max(last, time);
  }

  void add(std::vector<Moment>& list, Moment moment) const {
    moment.text = in_folder(moment.text, history_.record.directory);
    if (moment.text.size() > kLongestText) moment.text = moment.text.substr(0, kLongestText) + "…";
    list.push_back(std::move(moment));
  }

  RunHistory& history_;
  Lineage lineage_;
  std::map<std::int64_t, double> start_steps_;         ///< where each start began
  std::map<std::uint64_t, std::int64_t> order_steps_;  ///< where each order applies
  std::map<std::int64_t, double> last_times_;          ///< of each start's lines
  std::int64_t start_ = 0;                             ///< of the last line
  double last_logged_ = 0, steps_ = 1;                 ///< of phases: the step, and for how many
  std::string time_;                                   ///< of the event that is taken
};

}  // namespace

const Branch* RunHistory::branch(const std::string& name) const {
  const auto found =
      std::find_if(branches.begin(), branches.end(), [&](const Branch& one) { return one.name == name; });
  return found == branches.end() ? nullptr : &*found;
}

std::optional<std::pair<double, double>> RunHistory::last_value(const std::string& branch,
                                                                const std::string& metric,
                                                                double step) const {
  std::optional<std::pair<double, double>> last;
  for (const Stretch& stretch : stretches) {
    const auto found = stretch.metrics.find(metric);
    if (stretch.branch != branch || found == stretch.metrics.end()) continue;
    for (const auto& piece : found->second.pieces())
      if (piece.last_step <= step && piece.last_step < stretch.repeated_at)
        last = {piece.step(), piece.mean()};
  }
  return last;
}

RunHistory read_run_history(const RunRecord& run) {
  RunHistory history;
  history.record = run;
  Reader reader(history);
  history.unreadable +=
      read_start_lines(run.directory, [&](const StartRecord& start) { reader.start(start); });
  history.unreadable +=
      read_metrics_lines(run.directory, [&](const MetricsLine& line) { reader.metrics(line); });
  history.unreadable += read_event_lines(run.directory, [&](const Event& event) { reader.event(event); });
  reader.finish();
  return history;
}

std::string in_folder(std::string text, const std::filesystem::path& folder) {
  const std::string prefix = folder.string() + "/";
  for (auto at = text.find(prefix); prefix.size() > 1 && at != std::string::npos; at = text.find(prefix, at))
    text.erase(at, prefix.size());
  return text;
}

std::string shown(const Value& value) {
  if (const auto* number = std::get_if<double>(&value)) return rounded(*number);
  if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    std::vector<std::string> items;
    for (const double number : *numbers) items.push_back(rounded(number));
    return "{" + join(items) + "}";
  }
  return display(value);
}

std::string shown(const SettingMove& move) {
  return move.name + " " + shown(move.before) + " → " + shown(move.after);
}

}  // namespace footplate::report
