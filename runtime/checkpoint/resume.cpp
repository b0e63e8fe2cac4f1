#include "runtime/checkpoint/resume.h"

#include "run_files/checkpoint_folders.h"
#include "runtime/checkpoint/checkpoint_reader.h"

namespace footplate {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += "\n  " + line;
  return text;
}

/// Verifies, and keeps in `choice` which one it is and which ones don't verify.
IsGood into(ResumeChoice& choice) {
  return [&choice](const std::filesystem::path& path) {
    const auto manifest = verify_checkpoint(path);
    if (manifest)
      choice.path = path;
    else
      choice.skipped.push_back("skipped " + path.filename().string() + ": " + manifest.error().message);
    return manifest.has_value();
  };
}

/// "; the newest good one before it: --resume …", of the same branch: what can be resumed in place of
/// `damaged`.
std::string older_good_one(const std::filesystem::path& damaged) {
  const auto name = parse_folder_name(damaged.filename().string());
  if (!name) return {};  // a copy somewhere
  for (const auto& path : list_checkpoints(damaged.parent_path())) {
    const auto other = parse_folder_name(path.filename().string());
    if (path == damaged || !other || other->step > name->step) continue;
    if (verify_checkpoint(path)) return "; the newest good one before it: --resume " + path.string();
  }
  return "; no older one in " + damaged.parent_path().string() + " is good";
}

ResumeChoice newest_of_branches(const std::filesystem::path& run) {
  ResumeChoice choice;
  newest_checkpoint(run, into(choice));
  return choice;
}

tl::unexpected<Error> none_can_be_used(const std::filesystem::path& run, const ResumeChoice& choice,
                                       const std::string& advice = {}) {
  return fail(ErrorKind::failed,
              run.string() + " has no checkpoint that can be used" + advice + joined(choice.skipped));
}

Result<ResumeChoice> newest_of_run(const std::filesystem::path& run) {
  ResumeChoice choice = newest_of_branches(run);
  if (choice.path) return choice;
  return none_can_be_used(run, choice);
}

/// A run that began at step 0 beside them would lose its own checkpoints to them: theirs have more steps.
Result<ResumeChoice> newest_of_own(const std::filesystem::path& run) {
  if (auto readable = can_list_checkpoints(run); !readable) return tl::unexpected(readable.error());
  ResumeChoice choice = newest_of_branches(run);
  if (choice.path || choice.skipped.empty()) return choice;
  return none_can_be_used(
      run, choice,
      "; bring one back, or move " + checkpoints_folder(run).string() + " away to begin at step 0:");
}

}  // namespace

ResumeChoice newest_verified(const std::filesystem::path& branch) {
  ResumeChoice choice;
  newest_in(branch, into(choice));
  return choice;
}

Result<ResumeChoice> resolve_resume(const std::filesystem::path& run_directory, const std::string& resume) {
  if (resume == "auto") return newest_of_own(run_directory);
  const std::filesystem::path path(resume);
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    return fail(ErrorKind::usage,
                "can't resume from '" + resume + "': " + (error ? error.message() : "not a folder") +
                    "; give auto, the folder of a checkpoint (RUN/checkpoints/BRANCH/step-…) or of a run");
  if (std::filesystem::exists(path / kManifestName, error)) {
    const auto manifest = verify_checkpoint(path);
    if (!manifest) return fail(manifest.error().kind, manifest.error().message + older_good_one(path));
    return ResumeChoice{path, {}};
  }
  if (std::filesystem::is_directory(checkpoints_folder(path), error)) return newest_of_run(path);
  return fail(ErrorKind::usage,
              "can't resume from '" + resume +
                  "': neither a checkpoint (no manifest.json in it) nor a run (no checkpoints in it)");
}

}  // namespace footplate
