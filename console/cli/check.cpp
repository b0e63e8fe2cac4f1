// footplate check: everything that can be said about a configuration without starting a run.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>

#include "console/cli/commands.h"
#include "console/cli/configuration.h"
#include "console/cli/programs.h"
#include "console/cli/scripts.h"
#include "console/client/render/render.h"
#include "console/client/render/text.h"
#include "console/launch/start/ask_program.h"
#include "console/launch/start/find_rank.h"
#include "protocol/exit_codes.h"

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

constexpr std::chrono::seconds kLookTakes{30};  ///< to load the rank's libraries from a slow disk, and look

struct CheckOptions {
  std::vector<std::string> words;
  ScriptOptions scripts;
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

/// Looks at the data as a rank does, which has the code for that. That it can't be asked says nothing about
/// the configuration: a line on stderr then.
Result<void> check_data(const Settings& settings) {
  const auto answer = find_rank(program_folder()).and_then([&](const std::filesystem::path& rank) {
    return ask_program(rank, {"--check-data"},
                       settings.to_json().dump(-1, ' ', false, Json::error_handler_t::replace), STDERR_FILENO,
                       kLookTakes);
  });
  std::string said = answer ? answer->text : answer.error().message;
  while (!said.empty() && said.back() == '\n') said.pop_back();
  if (answer && answer->code == 0) {
    if (!said.empty()) std::fprintf(stderr, "%s\n", printable(said).c_str());  // a warning
    return {};
  }
  if (answer && answer->code == static_cast<int>(ExitCode::usage)) return fail(ErrorKind::usage, said);
  if (answer && !answer->in_time) said = "no answer within " + std::to_string(kLookTakes.count()) + " s";
  if (said.empty())
    said = answer->code < 0 ? "a signal ended footplate-rank"
                            : "footplate-rank ended with code " + std::to_string(answer->code);
  std::fprintf(stderr, "footplate: whether data.corpus can be had was not checked: %s\n",
               printable(said).c_str());
  return {};
}

Result<int> check(const CheckOptions& options) {
  auto schema = load_schema();
  if (!schema) return tl::unexpected(schema.error());
  const auto settings = configure(split_words(options.words), *schema, Settings::defaults(*schema));
  if (!settings) return tl::unexpected(settings.error());
  if (auto data = check_data(*settings); !data) return tl::unexpected(data.error());
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
                  "configs, merged from left to right, and single settings")
      ->required();
  declare_scripts(command, options->scripts);
  return [options] { return check(*options); };
}

}  // namespace footplate
