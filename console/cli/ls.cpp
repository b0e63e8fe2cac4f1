// footplate ls: this user's runs on this host.
#include <cstdio>
#include <memory>

#include "console/cli/commands.h"
#include "console/client/render/render.h"
#include "console/client/runs/run_index.h"
#include "console/launch/run_dir/missing_result.h"

namespace footplate {
namespace {

std::vector<std::string> row(const RunRecord& run) {
  return {run.name(),
          run.state(),
          std::to_string(step_now(run)),
          run.run.world_size ? ranks_text(run.run) : "-",
          duration(seconds_since(run.run.started)),
          run.directory.string()};
}

Result<int> list(bool all) {
  std::vector<std::vector<std::string>> rows{{"name", "state", "step", "ranks", "age", "directory"}};
  std::size_t hidden = 0;
  for (const auto& run : known_runs()) {
    if (all || run.life == Life::live)
      rows.push_back(row(run));
    else
      ++hidden;
  }
  if (rows.size() > 1)
    std::fputs(table(rows).c_str(), stdout);
  else
    std::puts(hidden > 0 ? "no run is live" : "there is no run yet; start one with: footplate run CONFIG");
  if (hidden > 0) std::fprintf(stderr, "%zu ended or lost: footplate ls -a\n", hidden);
  return 0;
}

}  // namespace

Handler declare_ls(CLI::App& command) {
  auto all = std::make_shared<bool>(false);
  command.add_flag("-a,--all", *all, "ended and lost ones too");
  return [all] { return list(*all); };
}

}  // namespace footplate
