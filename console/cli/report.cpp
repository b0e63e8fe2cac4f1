// footplate report: runs as a page for a browser.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "console/cli/commands.h"
#include "console/cli/programs.h"
#include "console/client/link/find_run.h"
#include "console/report/page.h"
#include "protocol/schema.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::vector<std::string> runs;
  std::vector<std::string> metrics;
  std::string output;
};

Result<std::vector<report::RunHistory>> read_runs(const ReportOptions& options) {
  std::vector<std::string> names = options.runs;
  if (names.empty()) names.emplace_back();
  std::set<std::string> wanted(options.metrics.begin(), options.metrics.end());
  std::vector<report::RunHistory> runs;
  for (const std::string& name : names) {
    const auto found = find_run(name, Wanted::any);
    if (!found) return tl::unexpected(found.error());
    runs.push_back(report::read_run_history(*found));
  }
  std::set<std::string> known;
  for (const report::RunHistory& run : runs)
    for (const report::Stretch& stretch : run.stretches)
      for (const auto& [metric, series] : stretch.metrics)
        known.insert(metric == report::kOtherEvaluations ? "eval/loss" : metric);
  for (const std::string& metric : wanted) {
    if (known.count(metric) > 0) continue;
    const std::string near = nearest(metric, {known.begin(), known.end()});
    std::string all;
    for (const std::string& one : known) all += (all.empty() ? "" : " ") + one;
    return fail(ErrorKind::usage, "no run has a metric '" + metric + "'" +
                                      (near.empty() ? "" : "; did you mean " + near + "?") +
                                      (all.empty() ? "; none is written yet" : "; there are " + all));
  }
  return runs;
}

Result<int> write_report(const ReportOptions& options) {
  const auto runs = read_runs(options);
  if (!runs) return tl::unexpected(runs.error());
  // Without it, as in a broken installation, the configuration lacks defaults and units.
  const Schema schema = load_schema().value_or(Schema{});
  const std::string page =
      report::page(*runs, options.metrics.empty() ? report::kUsualMetrics : options.metrics, schema);
  fs::path path = options.output;
  if (path.empty()) path = runs->size() == 1 ? runs->front().record.directory / "report.html" : "report.html";
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << page;
  file.close();
  if (!file)
    return fail(ErrorKind::failed, "can't write " + path.string() + ": " + std::strerror(errno) +
                                       "; -o FILE writes it elsewhere");
  std::error_code none;
  std::puts(fs::absolute(path, none).c_str());
  return 0;
}

}  // namespace

Handler declare_report(CLI::App& command) {
  auto options = std::make_shared<ReportOptions>();
  command.add_option("RUN", options->runs,
                     "runs by name or path; left out: your only live run, or the newest");
  command
      .add_option("--metric", options->metrics,
                  "a metric to draw (may be given again), in place of the usual ones")
      ->allow_extra_args(false);
  command.add_option("-o,--output", options->output,
                     "the page's file; left out: report.html in the run's folder");
  return [options] { return write_report(*options); };
}

}  // namespace footplate
