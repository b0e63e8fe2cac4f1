// footplate: the command line. Reads it, hands over to one subcommand, and maps every outcome to an exit code
// (protocol/exit_codes.h).
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>

#include "console/cli/commands.h"
#include "console/cli/scripts.h"
#include "protocol/exit_codes.h"
#include "protocol/schema.h"
#include "protocol/version.h"

namespace footplate {
namespace {

int report(const Error& error) {
  std::fprintf(stderr, "footplate: %s\n", error.message.c_str());
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

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // not for people
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string with_nearest(const std::string& start, const std::string& word,
                         const std::vector<std::string>& names) {
  if (const std::string near = nearest(word, names); !near.empty())
    return start + "; did you mean " + near + "?";
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  return start + "; there are " + list;
}

/// What CLI11 says about a command line, with the nearest name where it met an unknown one.
Error usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const auto used = app.get_subcommands();
  const CLI::App& scope = used.empty() ? app : *used.front();
  const std::string help =
      scope.get_name().empty() ? "footplate --help" : "footplate " + scope.get_name() + " --help";
  std::string message = error.what();
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
    // "The following argument was not expected: --bach"; what was left is nowhere else after a subcommand's
    // error.
    std::string word = message.substr(message.rfind(": ") == std::string::npos ? 0 : message.find(": ") + 2);
    word = word.substr(0, word.find(' '));
    const std::string option = word.substr(0, word.find('='));
    message = option.size() > 1 && option.front() == '-'
                  ? with_nearest("unknown option " + option, option, option_names(scope))
                  : "unexpected argument '" + word + "'";
  }
  return {ErrorKind::usage, message + " (" + help + ")"};
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

/// CLI11 would call an unknown subcommand an unexpected argument.
std::string unknown_command(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  const auto names = command_names();
  for (const auto& name : names)
    if (name == argv[1]) return {};
  return with_nearest("unknown command '" + std::string(argv[1]) + "'", argv[1], names);
}

/// `footplate help`; of one command CLI11 tells: `footplate COMMAND --help`.
bool asks_for_help(int argc, char** argv) {
  return argc == 2 && std::string_view(argv[1]) == "help";
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
  if (asks_for_help(argc, argv)) {
    std::fputs(commands_text().c_str(), stdout);
    return static_cast<int>(ExitCode::done);
  }
  if (const std::string unknown = unknown_command(argc, argv); !unknown.empty())
    return report({ErrorKind::usage, unknown + " (footplate --help)"});
  try {
    app.parse(with_script_arguments(argc, argv));
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
