#include "console/cli/scripts.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>

#include "console/cli/programs.h"
#include "console/launch/start/ask_program.h"
#include "protocol/layout.h"
#include "run_files/job_plan.h"
#include "run_files/text_file.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

/// What each argument after `--` becomes, and the mark before it: an empty one would be none.
constexpr const char* kAfterDashes = "--argument-after-dashes";
constexpr std::string_view kMark = ":";
constexpr std::size_t kMostSource = 256U * 1024;
constexpr std::chrono::seconds kCheckTakes{30};  ///< a script may run for 10 s before its first wait

std::string job_name(const std::string& path, std::set<std::string>& taken) {
  std::string stem = fs::path(path).stem().string().substr(0, 48);
  for (char& c : stem)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_' && c != '-') c = '-';
  if (stem.empty()) stem = "job";
  std::string name = stem;
  for (int number = 2; !taken.insert(name).second; ++number) name = stem + "-" + std::to_string(number);
  return name;
}

Result<std::string> run_check(const Json& given) {
  const auto answer =
      ask_program(find_part(Part::lua, program_folder()), {"--check"},
                  given.dump(-1, ' ', false, Json::error_handler_t::replace), STDOUT_FILENO, kCheckTakes);
  if (!answer) return tl::unexpected(answer.error());
  if (!answer->in_time)
    return fail(ErrorKind::script, "a script doesn't come to its first wait, or its end, within " +
                                       std::to_string(kCheckTakes.count()) + " s");
  return answer->text;
}

/// Those after `--` are the last of a command line.
std::vector<std::string> arguments_of(const ScriptOptions& options) {
  std::vector<std::string> list = options.arguments;
  for (const auto& argument : options.after_dashes) list.push_back(argument.substr(kMark.size()));
  return list;
}

}  // namespace

void declare_scripts(CLI::App& command, ScriptOptions& options) {
  command
      .add_option("--script", options.files,
                  "a job script, run beside the training (may be given again); -- ARGS: its arguments")
      ->allow_extra_args(false);
  command
      .add_option("--script-argument", options.arguments,
                  "an argument of the job scripts (may be given again), ahead of those after --")
      ->allow_extra_args(false);
  command.add_option(kAfterDashes, options.after_dashes)->allow_extra_args(false)->group("");
}

std::vector<std::string> with_script_arguments(std::vector<std::string> words) {
  const bool takes = !words.empty() && (words.front() == "run" || words.front() == "check");
  const auto dashes = std::find(words.begin(), words.end(), "--");
  if (takes && dashes != words.end()) {
    for (auto word = words.erase(dashes); word != words.end(); ++word)
      *word = std::string(kAfterDashes) + "=" + std::string(kMark) + *word;
  }
  std::reverse(words.begin(), words.end());  // as CLI11 takes them
  return words;
}

Result<std::vector<Script>> read_scripts(const ScriptOptions& options) {
  if (options.files.empty() && !(options.arguments.empty() && options.after_dashes.empty()))
    return fail(ErrorKind::usage,
                "--script-argument, and what is after --, are for a job script; none is given with --script");
  std::vector<Script> scripts;
  std::set<std::string> taken;
  for (const std::string& path : options.files) {
    auto code = text_of_file(path);
    if (!code) return fail(ErrorKind::usage, "--script: " + code.error().message);
    Script script{job_name(path, taken), path, *std::move(code)};
    if (script.code.size() > kMostSource)
      return fail(ErrorKind::usage,
                  "--script " + path + ": a script may have " + std::to_string(kMostSource) + " bytes");
    scripts.push_back(std::move(script));
  }
  return scripts;
}

Result<std::vector<ScriptFindings>> check_scripts(const std::vector<Script>& scripts,
                                                  const ScriptOptions& options, const Schema& schema,
                                                  const Settings& settings) {
  std::vector<ScriptFindings> findings;
  if (scripts.empty()) return findings;
  Json given = {{"schema", schema.to_json()}, {"settings", settings.to_json()}, {"scripts", Json::array()}};
  for (const Script& script : scripts)
    given["scripts"].push_back(
        {{"path", script.path}, {"code", script.code}, {"arguments", arguments_of(options)}});
  const auto text = run_check(given);
  if (!text) return tl::unexpected(text.error());
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const auto json = parse_line(line);
    ScriptFindings found;
    if (!json || !read_json(*json, found)) break;
    if (found.error) return fail(ErrorKind::script, found.error->message);
    findings.push_back(std::move(found));
  }
  if (findings.size() < scripts.size())
    return fail(ErrorKind::script,
                scripts[findings.size()].path +
                    ": the checking process ended; a script may have 64 MiB, and ends by return");
  return findings;
}

Result<void> keep_scripts(const fs::path& run_directory, const std::vector<Script>& scripts,
                          const ScriptOptions& options, bool goes_on, bool unattended) {
  const fs::path folder = run_directory / "jobs";
  JobPlan before = read_job_plan(run_directory);
  JobPlan plan{unattended, before.given + (scripts.empty() ? 0 : 1), {}};
  std::error_code error;
  fs::create_directories(folder, error);
  fs::permissions(folder, fs::perms::owner_all, error);
  if (scripts.empty() && goes_on) plan.jobs = std::move(before.jobs);
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    const std::string file = std::to_string(i + 1) + "-" + scripts[i].name + ".lua";
    std::ofstream copy(folder / file, std::ios::binary | std::ios::trunc);
    copy << scripts[i].code;
    copy.close();
    if (!copy) return fail(ErrorKind::usage, "can't write " + (folder / file).string());
    plan.jobs.push_back({scripts[i].name, file, scripts[i].path, arguments_of(options)});
  }
  return write_job_plan(run_directory, plan);
}

}  // namespace footplate
