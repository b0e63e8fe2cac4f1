#include "console/report/page.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "console/client/render/render.h"
#include "console/client/render/text.h"
#include "console/report/chart.h"
#include "console/report/html.h"
#include "console/report/sections.h"

namespace footplate::report {
namespace {

constexpr std::size_t kMostMarks = 200;  ///< of a chart
constexpr std::size_t kMostBreaks = 20;
/// Losses of other held-out samples than eval.batches chooses, and what they are of.
constexpr std::array<std::pair<const char*, const char*>, 4> kIncomparable{
    {{"eval/full_loss", "all that is held out"},
     {"eval/other_loss", "on other batches"},
     {"eval/local_loss", "of rank 0 alone, which failed"},
     {kOtherEvaluations, "on other batches"}}};
constexpr double kNearbyRate = 3;  ///< of the learning rate's axis: as ChartLook::nearby

/// "2026-11-24 07:36:33"
std::string second_of(const std::string& iso) {
  std::string text = iso.substr(0, std::string_view("2026-11-24T07:36:33").size());
  if (const auto t = text.find('T'); t != std::string::npos) text[t] = ' ';
  return text;
}

std::string step_text(std::int64_t step) {
  return step < 0 ? "" : std::to_string(step);
}

/// Of its newest branch; of a run of an older version the lowest evaluation.
double best_evaluation(const RunHistory& run) {
  const Branch* newest = run.starts.empty() ? nullptr : run.branch(run.starts.back().branch);
  if (newest != nullptr && !std::isnan(newest->best_loss)) return newest->best_loss;
  double best = kNever;
  for (const Stretch& stretch : run.stretches)
    if (const auto found = stretch.metrics.find("eval/loss"); found != stretch.metrics.end())
      for (const auto& piece : found->second.pieces()) best = std::min(best, piece.least);
  return best < kNever ? best : std::nan("");
}

/// With its color, where there are several.
std::string run_cell(const std::vector<RunHistory>& runs, const std::vector<BranchView>& views,
                     std::size_t run) {
  const std::string name = runs[run].record.name();
  return runs.size() == 1 ? cell(name, "name") : colored_cell(name, color_of_run(views, run));
}

std::string outcomes(const std::vector<RunHistory>& runs, const std::vector<BranchView>& views) {
  Table table({"run", "state", "#step", "#ranks", "#starts", "trained for", "#best evaluation", "outcome"});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunHistory& run = runs[i];
    const auto& best = run.record.run.best_evaluation;
    const StartRecord last = run.starts.empty() ? StartRecord() : run.starts.back();
    table.row(run_cell(runs, views, i) + cell(run.record.state()) +
              cell(std::to_string(run.record.step()), "n") + cell(std::to_string(last.world_size), "n") +
              cell(std::to_string(run.starts.size()), "n") + cell(duration(run.trained_s)) +
              cell(best ? four_digits(best->loss) + " at step " + std::to_string(best->step)
                        : four_digits(best_evaluation(run)),
                   "n") +
              cell(in_folder(run.record.outcome(), run.record.directory), "long"));
  }
  return heading("Runs") + table.html();
}

/// Starts from one checkpoint are one mark.
void join_starts(std::vector<Mark>& marks) {
  std::map<double, std::size_t> places;
  std::vector<Mark> joined;
  for (Mark& mark : marks) {
    const auto found = mark.kind == MomentKind::start ? places.find(mark.step) : places.end();
    if (found == places.end()) {
      if (mark.kind == MomentKind::start) places[mark.step] = joined.size();
      joined.push_back(std::move(mark));
      continue;
    }
    Mark& first = joined[found->second];
    first.text += "\n" + mark.text;
    first.label += (first.label.empty() || mark.label.empty() ? "" : ", ") + mark.label;
  }
  marks = std::move(joined);
}

/// Where there are more than a chart can show, what weighs most.
void thin_out(std::vector<Mark>& marks) {
  if (marks.size() <= kMostMarks) return;
  std::stable_sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) { return a.kind > b.kind; });
  marks.resize(kMostMarks);
}

std::vector<Mark> marks_of(const std::vector<RunHistory>& runs) {
  std::vector<Mark> marks;
  for (const RunHistory& run : runs)
    for (const auto* list : {&run.changes, &run.happenings})
      for (const Moment& moment : *list) {
        const bool drawn =
            list == &run.changes || moment.kind == MomentKind::failure || moment.kind == MomentKind::start;
        if (moment.step < 0 || !drawn) continue;
        std::string where = "step " + std::to_string(moment.step);
        if (run.branches.size() > 1 && !moment.branch.empty()) where = moment.branch + ", " + where;
        if (runs.size() > 1) where = run.record.name() + ": " + where;
        // Of several runs the lines say enough; their texts would be in each other's way.
        marks.push_back({static_cast<double>(moment.step),
                         printable(where + " · " + moment.text + " (" + moment.who + ")"),
                         runs.size() > 1 ? "" : printable(moment.label), moment.kind});
      }
  join_starts(marks);
  thin_out(marks);
  return marks;
}

ChartLook look_of(const std::vector<RunHistory>& runs) {
  double first = kNever, last = 1;
  for (const RunHistory& run : runs)
    for (const Stretch& stretch : run.stretches) {
      first = std::min(first, stretch.first_step);
      last = std::max(last, stretch.last_step);
    }
  // A run that went on from another's checkpoint begins far from 0.
  return {first < kNever && first > last / 2 ? first : 0, last};
}

/// Where the learning rate changed, unless it does all the time.
std::vector<double> breaks_of(const RunHistory& run, const std::string& branch) {
  std::vector<double> steps;
  for (const Moment& moment : run.changes)
    if (moment.kind == MomentKind::learning_rate && moment.step >= 0 && moment.branch == branch)
      steps.push_back(static_cast<double>(moment.step));
  if (steps.size() > kMostBreaks) steps.clear();
  std::sort(steps.begin(), steps.end());
  return steps;
}

/// The last value of the branch that another comes from, where that began.
std::optional<std::pair<double, double>> origin_of(const RunHistory& run, const BranchView& view,
                                                   const std::string& metric) {
  const Branch* branch = run.branch(view.name);
  if (branch == nullptr || branch->parent.empty()) return std::nullopt;
  return run.last_value(branch->parent, metric, static_cast<double>(branch->first_step));
}

std::vector<Curve> curves_of(const std::vector<RunHistory>& runs, const std::vector<BranchView>& views,
                             const std::string& metric, const std::string& of = "") {
  std::vector<Curve> curves;
  for (const BranchView& view : views) {
    Curve curve{view.label, view.color, metric.starts_with("eval/"), !of.empty()};
    if (!of.empty()) curve.label += (curve.label.empty() ? "" : " · ") + of;
    for (const Stretch& stretch : runs[view.run].stretches)
      if (const auto found = stretch.metrics.find(metric);
          found != stretch.metrics.end() && stretch.branch == view.name)
        curve.parts.push_back({&found->second, stretch.left_at, stretch.repeated_at});
    if (curve.parts.empty()) continue;
    curve.breaks = breaks_of(runs[view.run], view.name);
    if (curve.dots && of.empty()) curve.origin = origin_of(runs[view.run], view, metric);
    curves.push_back(std::move(curve));
  }
  return curves;
}

std::string charts(const std::vector<RunHistory>& runs, const std::vector<BranchView>& views,
                   const std::vector<std::string>& metrics) {
  const auto marks = marks_of(runs);
  std::string html;
  for (const std::string& metric : metrics) {
    auto curves = curves_of(runs, views, metric);
    if (metric == "eval/loss")
      for (const auto& [other, of] : kIncomparable)
        for (Curve& curve : curves_of(runs, views, other, of)) curves.push_back(std::move(curve));
    ChartLook look = look_of(runs);
    // It has no noise, and branches often differ in it: more of what the run left is of interest.
    if (metric == "train/lr") look = {look.first_step, look.last_step, false, true, kNearbyRate};
    html += chart(metric, curves, marks, look);
  }
  if (html.empty()) return heading("Curves") + paragraph("No metric has been written yet.");
  std::string smoothing = "<span class=\"quiet\">Smoothing:</span>";
  const std::vector<const char*> strengths = {"none", "some", "much"};
  for (std::size_t i = 0; i < strengths.size(); ++i) {
    const std::string id = "smooth-" + std::to_string(i);
    smoothing += "<input type=\"radio\" name=\"smoothing\" id=\"" + id + "\"" + (i == 1 ? " checked" : "") +
                 "><label for=\"" + id + "\">" + strengths[i] + "</label>\n";
  }
  return "<section>" + heading("Curves") +
         paragraph(
             "Over steps; the figures are the last values. Lines across: a change of the learning rate "
             "(solid), a "
             "start from a checkpoint (dashed), another change (dotted), a failure (red). Ticks at the foot: "
             "evaluations, saves and notes that were asked for. Point at one to read it. Triangles: values "
             "beyond "
             "the axis. Pale: steps that were trained again.",
             "quiet") +
         chart_definitions() + smoothing + "<div class=\"charts\">\n" + html + "</div></section>\n";
}

std::string times(const std::vector<RunHistory>& runs, const std::vector<BranchView>& views) {
  std::vector<std::string> columns = {"part", "#share", "#seconds", "#ms/step"};
  if (runs.size() > 1) columns.insert(columns.begin(), "run");
  Table table(columns);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    double all = 0;
    for (const auto& [phase, seconds] : runs[i].phase_s) all += seconds;
    std::vector<std::pair<std::string, double>> parts(runs[i].phase_s.begin(), runs[i].phase_s.end());
    std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const auto& [phase, seconds] : parts)
      table.row((runs.size() > 1 ? run_cell(runs, views, i) : "") + cell(phase) +
                cell(rounded(100 * seconds / std::max(all, 1e-12), 3) + " %", "n") +
                cell(rounded(seconds), "n") +
                cell(runs[i].trained_steps > 0 ? rounded(1000 * seconds / runs[i].trained_steps) : "", "n"));
  }
  return table.empty() ? "" : heading("Where the time went") + table.html();
}

/// Of all runs, by time.
std::string moments(const std::vector<RunHistory>& runs, const std::vector<BranchView>& views,
                    const char* title, const char* nothing, const char* who,
                    std::vector<Moment> RunHistory::*list) {
  const bool branched = views.size() > runs.size();
  std::vector<std::string> columns = {"time (UTC)", "#step", who, "what"};
  if (branched) columns.insert(columns.begin(), "branch");
  if (runs.size() > 1) columns.insert(columns.begin(), "run");
  Table table(columns);
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (const Moment& moment : runs[i].*list)
      table.row((runs.size() > 1 ? run_cell(runs, views, i) : "") + (branched ? cell(moment.branch) : "") +
                cell(second_of(moment.time)) + cell(step_text(moment.step), "n") + cell(moment.who) +
                cell(moment.text, moment.kind == MomentKind::failure ? "long bad" : "long"));
  return heading(title) + (table.empty() ? paragraph(nothing) : table.html());
}

}  // namespace

const std::vector<std::string> kUsualMetrics = {"train/loss",      "eval/loss",    "train/lr",
                                                "train/grad_norm", "perf/step_ms", "perf/tokens_per_s"};

std::string page(const std::vector<RunHistory>& runs, const std::vector<std::string>& metrics,
                 const Schema& schema) {
  std::string names, folders;
  std::uint64_t unreadable = 0;
  for (const RunHistory& run : runs) {
    names += (names.empty() ? "" : ", ") + run.record.name();
    folders += (folders.empty() ? "" : ", ") + run.record.directory.string();
    unreadable += run.unreadable;
  }
  const auto views = branch_views(runs);
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\">\n<link rel=\"icon\" href=\"data:,\"><title>" +
      clean(names) + " · footplate</title><style>" + kPageStyle + "</style></head><body>\n<h1>" +
      clean(names) + "</h1>\n";
  html += outcomes(runs, views) + branches_section(runs, views, schema) + charts(runs, views, metrics) +
          data_sets_section(runs, views) + configuration_section(runs, views, schema) + times(runs, views);
  html += moments(runs, views, "Changes", "Nothing was changed or called.", "by", &RunHistory::changes);
  html += moments(runs, views, "What happened", "No warning, no lost rank, one start.", "kind",
                  &RunHistory::happenings);
  if (unreadable > 0)
    html += paragraph(std::to_string(unreadable) + " lines of the runs' files could not be read.", "bad");
  html += paragraph("By footplate report, of the files in " + folders + ".", "quiet");
  return html + "</body></html>\n";
}

}  // namespace footplate::report
