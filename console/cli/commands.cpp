#include "console/cli/commands.h"

#include <algorithm>

#include "console/launch/run_dir/run_directory.h"

namespace footplate {

std::string why_no_run_name(const std::string& name) {
  if (name.empty()) return "a run's name can't be empty; without --name it gets one with a number";
  const auto good = check_run_name(name);
  return good ? "" : good.error().message;
}

const std::vector<CommandEntry>& commands() {
  static const std::vector<CommandEntry> kTable{
      {"train", "run", "start a training run", &declare_run},
      {"train", "stop", "save and end a run", &declare_stop},
      {"train", "replay", "run a run's journal again, to the same parameters", &declare_replay},
      {"train", "check", "validate a configuration without starting anything", &declare_check},
      {"train", "rm", "delete runs that are over", &declare_rm},
      {"steer", "attach", "the prompt of a run", &declare_attach},
      {"steer", "exec", "run one chunk of Lua in a run's console", &declare_exec},
      {"look", "status", "how a run is doing, rank by rank", &declare_status},
      {"look", "watch", "metrics of a run as they come: lines, or plots on a terminal", &declare_watch},
      {"look", "log", "the lines that a run has printed", &declare_log},
      {"look", "ls", "your runs on this host", &declare_ls},
      {"look", "inspect", "the checkpoints of a run, and what is in one", &declare_inspect},
      {"look", "report", "runs as a page for a browser: curves, changes, failures", &declare_report},
      {"look", "export", "a run's metrics for TensorBoard and others", &declare_export},
      {"set up", "settings", "what can be set, and to what", &declare_settings},
      {"set up", "completion", "completion of this command line for bash or zsh", &declare_completion},
      {"set up", "doctor", "is this machine fit for runs, and how to mend it", &declare_doctor},
  };
  return kTable;
}

std::string commands_text() {
  std::string text = "footplate: train, and steer what trains\n";
  std::string group;
  for (const CommandEntry& entry : commands()) {
    if (entry.group != group) text += "\n" + std::string(entry.group) + "\n";
    group = entry.group;
    constexpr std::size_t kColumn = 12;
    std::string name = entry.name;
    name.resize(std::max(name.size() + 1, kColumn), ' ');
    text += "  " + name + entry.help + "\n";
  }
  return text + "\nfootplate COMMAND --help tells more; the first run: footplate run kjv\n";
}

}  // namespace footplate
