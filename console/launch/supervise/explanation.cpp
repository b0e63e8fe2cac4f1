#include "console/launch/supervise/explanation.h"

#include <algorithm>

#include "console/client/render/text.h"
#include "console/client/runs/run_record.h"
#include "console/launch/run_dir/run_logs.h"
#include "console/launch/start/launch_failure.h"
#include "protocol/exit_codes.h"

namespace footplate {
namespace {

/// `text` with the launcher's last lines, where they say more than `reason`.
std::string with_log(const std::string& text, const std::string& name, const std::filesystem::path& directory,
                     const std::string& reason) {
  std::string lines = launcher_words(directory);
  // A detached supervisor has said all this into the same log.
  for (const char* how : {" ended at step", " came to no step"})
    if (const auto own = lines.find("footplate: " + name + how); own != std::string::npos) lines.erase(own);
  const bool says_more =
      !lines.empty() && (reason.empty() || lines.find("footplate: " + reason) == std::string::npos);
  return says_more ? text + "\n" + printable(lines) : text;
}

}  // namespace

std::string explanation_of_refused(const std::string& name, const std::filesystem::path& directory,
                                   const RunResult& refused) {
  const auto now = read_run(directory);
  std::string text =
      name + " came to no step: " + (refused.reason.empty() ? "no reason given" : refused.reason);
  if (!refused.note.empty()) text += " (" + refused.note + ")";
  text += "\n" + name + " is as it was, with its settings of before" +
          (now ? ", at step " + std::to_string(now->step()) + "; " + now->what_next() : "");
  const bool is_refusal = refused.code == static_cast<int>(ExitCode::usage) || refused.reason == kEndedSignal;
  return is_refusal ? text
                    : with_log(text + "; logs are in " + (directory / "log").string(), name, directory,
                               refused.reason);
}

std::string explanation(const std::string& name, const std::filesystem::path& directory,
                        const RunResult& result) {
  if (result.code == 0) return {};
  const bool is_resumable = result.code == static_cast<int>(ExitCode::resumable);
  std::string text = name + " ended at step " + std::to_string(result.step) + ": " +
                     (result.reason.empty() ? "no reason given" : result.reason);
  if (!result.note.empty()) text += " (" + result.note + ")";
  if (result.checkpoint) text += "; checkpoint " + *result.checkpoint;
  if (is_resumable) text += "; go on with: footplate run --name " + name + " --resume auto";
  if (result.step > 0 || is_resumable) return text;
  return with_log(text + "; logs are in " + (directory / "log").string(), name, directory, result.reason);
}

}  // namespace footplate
