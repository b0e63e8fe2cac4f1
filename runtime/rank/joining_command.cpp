#include "runtime/rank/joining_command.h"

#include "protocol/layout.h"

namespace footplate {

std::vector<std::string> joining_command(const RankOptions& options, const Origin& origin,
                                         const std::string& corpus) {
  std::vector<std::string> command = {find_part(Part::rank, own_folder()),
                                      "--run-dir",
                                      options.run_directory,
                                      "--start",
                                      std::to_string(options.start),
                                      "--branch",
                                      origin.branch,
                                      "--corpus",
                                      corpus};
  if (!origin.checkpoint.empty()) command.insert(command.end(), {"--resume", origin.checkpoint});
  if (!options.console) command.emplace_back("--no-console");
  for (const int group : options.host_groups) command.push_back("--host-groups=" + std::to_string(group));
  command.emplace_back("--joins");
  return command;
}

}  // namespace footplate
