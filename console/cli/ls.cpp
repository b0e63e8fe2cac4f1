// footplate ls: this user's runs on this host.
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <memory>

#include "console/cli/commands.h"
#include "console/client/render/render.h"
#include "console/client/render/text.h"
#include "console/client/runs/run_index.h"
#include "console/launch/run_dir/missing_result.h"
#include "run_files/file_names.h"
#include "run_files/line_files.h"

namespace footplate {
namespace {

constexpr std::uintmax_t kLastMetrics = 64U << 10;  ///< bytes of metrics.jsonl that are looked at
constexpr std::size_t kOutcomeColumns = 40;
constexpr const char* kNothing = "-";

using Row = std::vector<std::string>;

Row row(const RunRecord& run) {
  const std::string ranks = ranks_text(run.run);
  return {run.name(), run.state(), std::to_string(step_now(run)), ranks.empty() ? kNothing : ranks,
          duration(seconds_since(run.run.started))};
}

/// The newest loss and evaluation of a run.
struct LastLosses {
  std::optional<double> loss, eval_loss;
};

LastLosses last_losses(const RunRecord& run) {
  LastLosses last;
  static_cast<void>(read_metrics_lines(
      run.directory,
      [&](const MetricsLine& line) {
        if (const auto loss = line.metrics.number("train/loss")) last.loss = loss;
        if (const auto loss = line.metrics.number("eval/loss")) last.eval_loss = loss;
      },
      kLastMetrics));
  if (run.result && run.result->eval_loss) last.eval_loss = run.result->eval_loss;
  return last;
}

/// "2026-11-20 19:30" of this host's clock: when a run ended, as its result's file says.
std::string end_of(const RunRecord& run) {
  struct stat file {};
  if (!run.result || ::stat((run.directory / kResultFile).c_str(), &file) != 0) return kNothing;
  std::tm local{};
  std::array<char, 32> text{};
  ::localtime_r(&file.st_mtim.tv_sec, &local);
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &local);
  return text.data();
}

/// "done", or "a rank was lost to SIGKILL (75)": with the exit code where it isn't 0.
std::string short_outcome(const RunRecord& run) {
  if (run.life == Life::live) return kNothing;
  if (!run.result) return "lost";
  const std::string reason = printable(run.result->reason.substr(0, run.result->reason.find('\n')));
  return cut(reason.empty() ? "no reason given" : reason, kOutcomeColumns) +
         (run.result->code == 0 ? "" : " (" + std::to_string(run.result->code) + ")");
}

/// With what is only worth telling of runs that are over.
Row long_row(const RunRecord& run) {
  const LastLosses last = last_losses(run);
  Row cells = row(run);
  for (const auto& loss : {last.loss, last.eval_loss}) cells.push_back(loss ? loss_text(*loss) : kNothing);
  cells.push_back(end_of(run));
  cells.push_back(short_outcome(run));
  return cells;
}

Result<int> list(bool all) {
  Row head{"name", "state", "step", "ranks", "age"};
  if (all) head.insert(head.end(), {"loss", "eval loss", "ended", "outcome"});
  head.emplace_back("directory");
  std::vector<Row> rows{head};
  std::size_t hidden = 0;
  for (const auto& run : known_runs()) {
    if (!all && run.life != Life::live) {
      ++hidden;
      continue;
    }
    rows.push_back(all ? long_row(run) : row(run));
    rows.back().push_back(run.directory.string());
  }
  if (rows.size() > 1)
    std::fputs(for_output(table(rows), STDOUT_FILENO).c_str(), stdout);
  else
    std::puts(hidden > 0 ? "no run is live" : "there is no run yet; start one with: footplate run CONFIG");
  if (hidden > 0) std::fprintf(stderr, "%zu ended or lost: footplate ls -a\n", hidden);
  return 0;
}

/// For programs: shell completion asks it.
Result<int> list_names() {
  for (const auto& run : known_runs()) std::puts(printable(run.name()).c_str());
  return 0;
}

}  // namespace

Handler declare_ls(CLI::App& command) {
  auto all = std::make_shared<bool>(false);
  auto names = std::make_shared<bool>(false);
  command.add_flag("-a,--all", *all, "ended and lost ones too, with their losses, end and outcome");
  command.add_flag("--names", *names, "the names of all, one a line");
  return [=] { return *names ? list_names() : list(*all); };
}

}  // namespace footplate
