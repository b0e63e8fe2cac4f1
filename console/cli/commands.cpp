#include "console/cli/commands.h"

#include "console/launch/run_dir/run_directory.h"

namespace footplate {

std::string why_no_run_name(const std::string& name) {
  if (name.empty()) return "a run's name can't be empty; without --name it gets one with a number";
  const auto good = check_run_name(name);
  return good ? "" : good.error().message;
}

const std::vector<CommandEntry>& commands() {
  static const std::vector<CommandEntry> kTable{
      {"run", "start a training run", &declare_run},
      {"attach", "the prompt of a run", &declare_attach},
      {"exec", "run one chunk of Lua in a run's console", &declare_exec},
      {"status", "how a run is doing, rank by rank", &declare_status},
      {"stop", "save and end a run", &declare_stop},
      {"log", "the lines that a run has printed", &declare_log},
      {"watch", "metrics of a run as they come: lines, or plots on a terminal", &declare_watch},
      {"ls", "your runs on this host", &declare_ls},
      {"check", "validate a configuration without starting anything", &declare_check},
      {"inspect", "the checkpoints of a run, and what is in one", &declare_inspect},
      {"report", "runs as a page for a browser: curves, changes, failures", &declare_report},
      {"export", "a run's metrics for TensorBoard and others", &declare_export},
      {"replay", "run a run's journal again, to the same parameters", &declare_replay},
      {"settings", "what can be set, and to what", &declare_settings},
      {"doctor", "is this machine fit for runs, and how to mend it", &declare_doctor},
  };
  return kTable;
}

}  // namespace footplate
