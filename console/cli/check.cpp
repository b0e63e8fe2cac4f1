// footplate check: everything that can be said about a configuration without starting a run.
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <sstream>

#include "console/cli/commands.h"
#include "console/cli/configuration.h"
#include "console/cli/programs.h"
#include "console/cli/scripts.h"
#include "console/client/render/render.h"
#include "console/client/render/text.h"
#include "console/launch/start/ask_program.h"
#include "console/launch/start/find_rank.h"
#include "console/launch/start/signals.h"
#include "protocol/exit_codes.h"
#include "protocol/task_check.h"
#include "protocol/task_name.h"

namespace footplate {
namespace {

/// Settings that differ from their default, as lines of a config.
std::string differing(const Schema& schema, const Settings& settings) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& spec : schema.settings)
    if (settings.source(spec.name) != "default")
      rows.push_back(
          {spec.name + " = " + to_text(settings.value(spec.name)), "-- " + settings.source(spec.name)});
  return table(rows);
}

struct CheckOptions {
  std::vector<std::string> words;
  ScriptOptions scripts;
  double timeout_s = 30;  ///< to load the rank's libraries from a slow disk, and look
};

/// What a script would do: its rules, its first order and what it waits for then.
std::string findings_text(const ScriptFindings& found) {
  std::string text = found.path + ":\n";
  if (!found.order.empty()) text += "  orders " + found.order + "\n";
  for (const ScriptFindings::Rule& rule : found.rules)
    text += "  registers " + rule.text + ", line " + std::to_string(rule.line) + "\n";
  return text +
         (found.waits.empty() ? "  ends\n" : "  waits: " + found.waits + " (not checked any further)\n");
}

/// What the rank's program said of the data.
struct Look {
  ProgramAnswer answer;
  std::string said;  ///< without what follows
  std::string part;  ///< of a task of the user's own: where it was last
  bool done = false;
};

/// Warnings, and what the task says, go to stderr at once.
Look read_look(ProgramAnswer answer) {
  Look look{std::move(answer), {}, {}};
  std::istringstream lines(look.answer.text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kCheckPart))
      look.part = line.substr(kCheckPart.size());
    else if (line == kCheckDone)
      look.done = true;
    else if (line.starts_with(kWarningLine) || line.starts_with(kTaskLine))
      std::fprintf(stderr, "%s\n", printable(line).c_str());
    else
      look.said += (look.said.empty() ? "" : "\n") + printable(line);
  }
  return look;
}

/// The task itself has ended the process, or doesn't come to an end.
Error explain_task(const std::string& task, const Look& look, double timeout_s) {
  const std::string where = look.part.empty() ? "before it was opened" : "in " + look.part;
  const std::string said = look.said.empty() ? "" : "\n" + look.said;
  const std::string start = "run.task = \"" + task + "\": ";
  if (!look.answer.in_time)
    return {ErrorKind::timed_out,
            start + "no end within " + shortest(timeout_s) + " s, " + where +
                "; footplate run would wait for it. Where it takes that long: footplate "
                "check --timeout SECONDS" +
                said};
  if (look.answer.signal != 0)
    return {ErrorKind::failed, start + signal_name(look.answer.signal) + " ended the process " + where +
                                   "; so it would end a run" + said};
  return {ErrorKind::failed, start + "the process was ended with the exit code " +
                                 std::to_string(look.answer.code) + " " + where +
                                 "; a task that can't go on throws, and never calls exit()" + said};
}

/// Footplate's own tasks: that the program can't be asked says nothing about the configuration.
void tell_unchecked(const std::string& what, const std::string& why) {
  std::fprintf(stderr, "footplate: whether %s can be had was not checked: %s\n", what.c_str(),
               printable(why).c_str());
}

/// Looks at the data as a rank does, which has the code for that.
Result<void> check_data(const Settings& settings, double timeout_s) {
  const std::string& task = settings.string("run.task");
  const std::string what = is_own_task(task) ? "run.task" : "data.corpus";
  auto answer = find_rank(program_folder()).and_then([&](const std::filesystem::path& rank) {
    return ask_program(rank, {"--check-data"},
                       settings.to_json().dump(-1, ' ', false, Json::error_handler_t::replace), STDERR_FILENO,
                       std::chrono::seconds(std::llround(timeout_s)));
  });
  if (!answer) {
    tell_unchecked(what, answer.error().message);
    return {};
  }
  const Look look = read_look(*std::move(answer));
  const bool refused = look.answer.code == static_cast<int>(ExitCode::usage);
  if (is_own_task(task) && !look.done) return tl::unexpected(explain_task(task, look, timeout_s));
  if (refused) return fail(ErrorKind::usage, look.said);
  if (look.answer.code == 0) {
    if (!look.said.empty()) std::fprintf(stderr, "%s\n", look.said.c_str());
    return {};
  }
  std::string why = look.said;
  if (!look.answer.in_time) why = "no answer within " + shortest(timeout_s) + " s";
  if (why.empty())
    why = look.answer.signal != 0 ? std::string(signal_name(look.answer.signal)) + " ended footplate-rank"
                                  : "footplate-rank ended with code " + std::to_string(look.answer.code);
  tell_unchecked(what, why);
  return {};
}

Result<int> check(const CheckOptions& options) {
  auto schema = load_schema();
  if (!schema) return tl::unexpected(schema.error());
  const auto settings = configure(split_words(options.words), *schema, Settings::defaults(*schema));
  if (!settings) return tl::unexpected(settings.error());
  if (auto data = check_data(*settings, options.timeout_s); !data) return tl::unexpected(data.error());
  const auto scripts = read_scripts(options.scripts);
  if (!scripts) return tl::unexpected(scripts.error());
  const auto findings = check_scripts(*scripts, options.scripts, *schema, *settings);
  if (!findings) return tl::unexpected(findings.error());
  std::fputs(differing(*schema, *settings).c_str(), stdout);
  for (const ScriptFindings& found : *findings) std::fputs(findings_text(found).c_str(), stdout);
  std::puts("good; everything else has its default (footplate settings)");
  return 0;
}

}  // namespace

Handler declare_check(CLI::App& command) {
  auto options = std::make_shared<CheckOptions>();
  command
      .add_option("CONFIG|KEY=VALUE", options->words,
                  "configs and presets, merged from left to right, and single settings")
      ->required();
  command
      .add_option("--timeout", options->timeout_s,
                  "seconds that a task of your own may take to be made, and to load a sample (30); then exit "
                  "code 6")
      ->check(CLI::Range(1.0, 1e6));
  declare_scripts(command, options->scripts);
  return [options] { return check(*options); };
}

}  // namespace footplate
