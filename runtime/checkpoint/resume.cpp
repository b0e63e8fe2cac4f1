#include "runtime/checkpoint/resume.h"

#include "runtime/checkpoint/branches.h"
#include "runtime/checkpoint/folder_name.h"
#include "runtime/checkpoint/loaded_checkpoint.h"

namespace footplate {
namespace {

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const auto& line : lines) text += "\n  " + line;
  return text;
}

/// Of the branch that was saved into last; of an older one where none of that verifies.
ResumeChoice newest_of_branches(const std::filesystem::path& run) {
  ResumeChoice choice;
  for (const auto& folder : list_branches(run)) {
    ResumeChoice of_branch = newest_checkpoint(folder);
    choice.path = std::move(of_branch.path);
    for (std::string& line : of_branch.skipped) choice.skipped.push_back(std::move(line));
    if (choice.path) break;
  }
  return choice;
}

Result<ResumeChoice> newest_of_run(const std::filesystem::path& run) {
  ResumeChoice choice = newest_of_branches(run);
  if (choice.path) return choice;
  return fail(ErrorKind::failed,
              run.string() + " has no checkpoint that can be used" + joined(choice.skipped));
}

}  // namespace

std::filesystem::path branch_folder(const std::filesystem::path& run_directory, const std::string& branch) {
  return run_directory / "checkpoints" / branch;
}

ResumeChoice newest_checkpoint(const std::filesystem::path& branch) {
  ResumeChoice choice;
  for (const auto& path : list_checkpoints(branch)) {
    const auto manifest = verify_checkpoint(path);
    if (manifest) {
      choice.path = path;
      return choice;
    }
    choice.skipped.push_back("skipped " + path.filename().string() + ": " + manifest.error().message);
  }
  return choice;
}

Result<ResumeChoice> resolve_resume(const std::filesystem::path& run_directory, const std::string& resume) {
  if (resume == "auto") return newest_of_branches(run_directory);
  const std::filesystem::path path(resume);
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    return fail(ErrorKind::usage,
                "can't resume from '" + resume + "': " + (error ? error.message() : "not a folder") +
                    "; give auto, the folder of a checkpoint (RUN/checkpoints/BRANCH/step-…) or of a run");
  if (std::filesystem::exists(path / kManifestName, error)) {
    const auto manifest = verify_checkpoint(path);
    if (!manifest) return tl::unexpected(manifest.error());
    return ResumeChoice{path, {}};
  }
  if (std::filesystem::is_directory(path / "checkpoints", error)) return newest_of_run(path);
  return fail(ErrorKind::usage,
              "can't resume from '" + resume +
                  "': neither a checkpoint (no manifest.json in it) nor a run (no checkpoints in it)");
}

}  // namespace footplate
