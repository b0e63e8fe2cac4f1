#include "console/cli/via.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "console/client/link/find_run.h"
#include "console/client/render/text.h"

namespace footplate {
namespace {

/// `words` without --via and its value, in front of "--".
std::vector<std::string> without_via(std::vector<std::string> words) {
  const auto end = std::find(words.begin(), words.end(), "--");
  const auto via = std::find_if(words.begin(), end, [](const std::string& word) {
    return word == "--via" || word.starts_with("--via=");
  });
  if (via == end) return words;
  const auto last = *via == "--via" && via + 1 != end ? via + 2 : via + 1;
  words.erase(via, last);
  return words;
}

/// Becomes that program; returns only where it can't.
Error go_to(const RunRecord& run, const std::string& program) {
  // Of a run.json that somebody else has written: ssh would take it as an option.
  if (run.host().starts_with('-'))
    return {ErrorKind::usage, "run " + run.name() + " says that it is on host '" + printable(run.host()) +
                                  "', which is no host's name"};
  std::vector<std::string> words{program};
  const bool is_ssh = std::filesystem::path(program).filename() == "ssh";
  // ssh gives the other side a terminal where it is told to.
  if (is_ssh && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) words.emplace_back("-t");
  words.push_back(run.host());
  words.push_back(remote_command(run, without_via(typed_words())));
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execvp(arguments.front(), arguments.data());
  return {ErrorKind::usage, "can't start " + program + " (--via, or FOOTPLATE_VIA): " + std::strerror(errno)};
}

}  // namespace

Handler with_via(CLI::App& command, std::function<const std::string&()> run, Handler handler) {
  auto program = std::make_shared<std::string>();
  command
      .add_option("--via", *program,
                  "where the run's console is on another host, run the command there with this program, as "
                  "ssh HOST COMMAND")
      ->envname("FOOTPLATE_VIA")
      ->type_name("PROGRAM");
  return [program, run = std::move(run), handler = std::move(handler)]() -> Result<int> {
    if (program->empty()) return handler();
    const auto found = find_run(run(), Wanted::any);
    if (found && found->life == Life::live && found->elsewhere())
      return tl::unexpected(go_to(*found, *program));
    return handler();
  };
}

}  // namespace footplate
