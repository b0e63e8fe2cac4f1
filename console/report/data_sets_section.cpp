#include <limits>
#include <set>

#include "console/report/html.h"
#include "console/report/sections.h"

namespace footplate::report {
namespace {

constexpr std::string_view kOfTraining = "data/", kOfEvaluation = "eval/";

/// What a name stands for where it is a data set's: data/SET/NAME or eval/SET/NAME; else empty.
struct SetMetric {
  std::string set;
  std::string name;
};
SetMetric set_metric(const std::string& metric, std::string_view group) {
  if (!metric.starts_with(group)) return {};
  const std::size_t slash = metric.find('/', group.size());
  if (slash == std::string::npos) return {};
  return {metric.substr(group.size(), slash - group.size()), metric.substr(slash + 1)};
}

/// Names of sets, and of what is measured of them.
struct Names {
  std::set<std::string> sets, metrics;
};
Names names_of(const std::vector<RunHistory>& runs) {
  Names names;
  for (const RunHistory& run : runs)
    for (const Stretch& stretch : run.stretches)
      for (const auto& [metric, series] : stretch.metrics)
        for (const std::string_view group : {kOfTraining, kOfEvaluation}) {
          const SetMetric one = set_metric(metric, group);
          if (one.set.empty()) continue;
          names.sets.insert(one.set);
          if (group == kOfTraining) names.metrics.insert(one.name);
        }
  return names;
}

/// Of the branch that the run is in, or was in at its end.
double last_of(const RunHistory& run, const std::string& metric) {
  const std::string branch = run.stretches.empty() ? "" : run.stretches.back().branch;
  const auto last = run.last_value(branch, metric, kNever);
  return last ? last->second : std::numeric_limits<double>::quiet_NaN();
}

/// "loss", of the last evaluation: of everything where there was one.
double evaluated(const RunHistory& run, const std::string& set, const std::string& name) {
  const std::string group = std::string(kOfEvaluation) + set + "/";
  const double whole = last_of(run, group + "full_" + name);
  return whole == whole ? whole : last_of(run, group + name);
}

bool is_position(const std::string& name) {
  return name == "samples" || name == "epoch";
}

}  // namespace

std::string data_sets_section(const std::vector<RunHistory>& runs, const std::vector<BranchView>& views) {
  const Names names = names_of(runs);
  if (names.sets.empty()) return "";
  std::vector<std::string> columns = {"data set", "#samples", "#epochs"};
  for (const std::string& name : names.metrics) {
    if (is_position(name)) continue;
    columns.push_back("#train " + name);
    columns.push_back("#eval " + name);
  }
  if (runs.size() > 1) columns.insert(columns.begin(), "run");
  Table table(columns);
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (const std::string& set : names.sets) {
      const std::string group = std::string(kOfTraining) + set + "/";
      std::string row = runs.size() > 1 ? colored_cell(runs[i].record.name(), color_of_run(views, i)) : "";
      row += cell(set) + cell(four_digits(last_of(runs[i], group + "samples")), "n") +
             cell(four_digits(last_of(runs[i], group + "epoch")), "n");
      for (const std::string& name : names.metrics)
        if (!is_position(name))
          row += cell(four_digits(last_of(runs[i], group + name)), "n") +
                 cell(four_digits(evaluated(runs[i], set, name)), "n");
      table.row(row);
    }
  return heading("Data sets") +
         paragraph(
             "Last values. train: means over the steps since the line before; eval: of the last "
             "evaluation, on everything that is held out where there was one.",
             "quiet") +
         table.html("metrics.jsonl");
}

}  // namespace footplate::report
