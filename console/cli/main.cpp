// footplate: the command line. Reads it, hands over to one subcommand, and maps every outcome to an exit code
// (protocol/exit_codes.h).
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "console/cli/commands.h"
#include "console/cli/scripts.h"
#include "console/cli/usage_advice.h"
#include "console/client/render/render.h"
#include "protocol/exit_codes.h"
#include "protocol/version.h"

namespace footplate {
namespace {

int report(const Error& error) {
  std::fprintf(stderr, "footplate: %s\n", for_output(error.message, STDERR_FILENO).c_str());
  return static_cast<int>(exit_code_for(error.kind));
}

/// Descriptors 0 to 2 that the caller closed would be given to the next file opened, and be written to.
void open_standard_streams() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::open("/dev/null", O_RDWR))
    if (fd > STDERR_FILENO) {
      ::close(fd);
      return;
    }
}

/// What a command has said has to have got there. `run` and `replay` go on without anybody who reads, and a
/// reader that has left (a pager) wants no more of it.
Result<void> check_output(const std::string& command) {
  errno = 0;
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (written || errno == EPIPE || command == "run" || command == "replay") return {};
  return fail(ErrorKind::failed, std::string("can't write to stdout: ") +
                                     (errno == 0 ? "an earlier write failed" : std::strerror(errno)));
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const auto& entry : commands()) names.emplace_back(entry.name);
  return names;
}

/// `footplate help`; of one command CLI11 tells: `footplate COMMAND --help`.
bool asks_for_help(const std::vector<std::string>& words) {
  return words.size() == 1 && words.front() == "help";
}

/// CLI11 would call an unknown command an unexpected argument, and an unknown option a missing command.
std::string unknown_first_word(const CLI::App& app, const std::string& word) {
  return word.starts_with('-') ? unknown_program_option(app, word) : unknown_command(word, command_names());
}

int main_of(int argc, char** argv) {
  if (argc < 2) {
    std::fputs(commands_text().c_str(), stderr);
    return static_cast<int>(ExitCode::usage);
  }
  CLI::App app("Live console for distributed training runs", "footplate");
  app.set_version_flag("--version", std::string("footplate ") + kFootplateVersion);
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, Handler>> handlers;
  for (const auto& entry : commands()) {
    CLI::App* command = app.add_subcommand(entry.name, entry.help);
    handlers.emplace_back(command, entry.declare(*command));
  }
  std::vector<std::string> words(argv + 1, argv + argc);
  if (asks_for_help(words)) {
    std::fputs(commands_text().c_str(), stdout);
    return static_cast<int>(ExitCode::done);
  }
  const bool of_one = words.size() == 2 && words.front() == "help";  // footplate help run
  if (of_one) words = {words.back(), "--help"};
  if (const std::string unknown = unknown_first_word(app, words.front()); !unknown.empty())
    return report({ErrorKind::usage, unknown + " (footplate --help)"});
  try {
    app.parse(with_script_arguments(std::move(words)));
  } catch (const CLI::Success& done) {  // --help, --version
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    return report(usage_error(app, error));
  }
  for (const auto& [command, handler] : handlers) {
    if (!command->parsed()) continue;
    const auto code = handler();
    if (!code) return report(code.error());
    const auto written = check_output(command->get_name());
    const int unwritten = written ? 0 : report(written.error());
    return *code != 0 ? *code : unwritten;
  }
  return static_cast<int>(ExitCode::usage);
}

}  // namespace
}  // namespace footplate

int main(int argc, char** argv) {
  footplate::open_standard_streams();
  try {
    return footplate::main_of(argc, argv);
  } catch (const std::exception& error) {  // out of memory, or a mistake of ours
    return footplate::report({footplate::ErrorKind::failed, std::string("unexpected: ") + error.what()});
  }
}
