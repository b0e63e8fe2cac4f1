#include "runtime/checkpoint/branches.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>
#include <utility>

#include "protocol/schema.h"
#include "protocol/words.h"
#include "run_files/checkpoint_folders.h"
#include "run_files/checkpoint_list.h"
#include "runtime/checkpoint/checkpoint_reader.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostListed = 12;

/// Those whose manifests can be read; `branch` first, within each newest first.
std::vector<FoundCheckpoint> all_of(const fs::path& run_directory, const std::string& branch) {
  std::vector<fs::path> folders = list_branches(run_directory);
  std::stable_partition(folders.begin(), folders.end(),
                        [&](const fs::path& folder) { return folder.filename() == branch; });
  std::vector<FoundCheckpoint> all;
  for (const fs::path& folder : folders)
    for (const fs::path& path : list_checkpoints(folder))
      if (auto manifest = read_manifest(path)) all.push_back({path, *std::move(manifest)});
  return all;
}

std::string name_of(const FoundCheckpoint& one) {
  return one.path.parent_path().filename().string() + "/" + one.path.filename().string();
}

tl::unexpected<Error> not_found(const std::string& what, const std::vector<FoundCheckpoint>& all) {
  if (all.empty())
    return fail(ErrorKind::usage, what + ": this run has no checkpoint yet; ckpt.save() makes one");
  std::string names;
  for (std::size_t i = 0; i < std::min(all.size(), kMostListed); ++i)
    names += (i == 0 ? "" : ", ") + name_of(all[i]);
  if (all.size() > kMostListed) names += " and " + std::to_string(all.size() - kMostListed) + " more";
  return fail(ErrorKind::usage, what + "; there are " + names);
}

/// "300" and "-500"; nothing for other texts.
std::optional<std::int64_t> number_in(const std::string& ref) {
  std::int64_t number = 0;
  const char* end = ref.data() + ref.size();
  const auto [rest, error] = std::from_chars(ref.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

Result<FoundCheckpoint> by_path(const fs::path& run_directory, const std::string& ref) {
  std::error_code none;
  const fs::path checkpoints = fs::weakly_canonical(checkpoints_folder(run_directory), none);
  const fs::path path =
      fs::weakly_canonical(run_directory / ref, none);  // an absolute `ref` stands for itself
  if (path.parent_path().parent_path() != checkpoints)
    return fail(ErrorKind::usage, "'" + ref + "' is no checkpoint of this run (" + checkpoints.string() +
                                      "/BRANCH/step-…); a new run goes on from another's: footplate run "
                                      "CONFIG --resume PATH");
  // As every other path of a checkpoint, also where the run's folder is reached through a link.
  const fs::path own = checkpoints_folder(run_directory) / path.parent_path().filename() / path.filename();
  auto manifest = read_manifest(own);
  if (!manifest) return tl::unexpected(manifest.error());
  return FoundCheckpoint{own, *std::move(manifest)};
}

std::string nearest_tag(const std::string& ref, const std::vector<FoundCheckpoint>& all) {
  std::vector<std::string> known{"best", "latest"};
  for (const FoundCheckpoint& one : all)
    if (!one.manifest.tag.empty()) known.push_back(one.manifest.tag);
  const std::string near = nearest(ref, known);
  return near.empty() || near == ref ? "" : " (did you mean " + near + "?)";
}

}  // namespace

Result<FoundCheckpoint> find_checkpoint(const fs::path& run_directory, const std::string& ref,
                                        const RunPosition& run) {
  if (ref.find('/') != std::string::npos) return by_path(run_directory, ref);
  const std::int64_t now = run.step;
  auto all = all_of(run_directory, run.branch);
  std::string missing = "there is no checkpoint '" + ref + "'" + nearest_tag(ref, all);
  std::function<bool(const FoundCheckpoint&)> wanted = [&](const FoundCheckpoint& one) {
    return one.path.filename() == ref || (!ref.empty() && one.manifest.tag == ref);
  };
  if (const auto number = number_in(ref)) {
    const std::int64_t step = ref.front() == '-' ? now + *number : *number;
    if (step > now)
      return fail(ErrorKind::usage,
                  "step " + ref + " hasn't come yet, the run is at step " + std::to_string(now));
    wanted = [step](const FoundCheckpoint& one) { return one.manifest.step <= step; };
    missing = "there is no checkpoint of step " + std::to_string(step) + " or before";
  } else if (ref == "latest") {
    wanted = [](const FoundCheckpoint&) { return true; };
  } else if (ref == "best") {
    wanted = [&](const FoundCheckpoint& one) {
      const Manifest& it = one.manifest;
      return run.best ? is_of_best(*run.best, it.step, it.branch, it.best_evaluation, it.best) : it.best;
    };
    missing = "no checkpoint is of the step of the best evaluation";
    if (run.best)
      missing += " (loss " + loss_text(run.best->loss) + " at step " + std::to_string(run.best->step) +
                 "); ckpt.keep_best = 1 saves those to come";
  }
  const auto found = std::find_if(all.begin(), all.end(), wanted);
  if (found == all.end()) return not_found(missing, all);
  return std::move(*found);
}

Result<std::string> new_branch(const fs::path& run_directory, const std::string& wanted, std::int64_t step) {
  std::error_code none;
  if (!wanted.empty()) {
    if (!is_tag(wanted))
      return fail(
          ErrorKind::usage,
          "branch \"" + wanted + "\" can't be a folder's name; use up to 64 letters, digits, '-' and '_'");
    if (!fs::exists(branch_folder(run_directory, wanted), none)) return wanted;
    return fail(ErrorKind::usage, "there is a branch \"" + wanted + "\" already; choose another name");
  }
  const std::string stem = "from-" + std::to_string(step);
  std::string name = stem;
  for (int number = 2; fs::exists(branch_folder(run_directory, name), none); ++number)
    name = stem + "-" + std::to_string(number);
  return name;
}

}  // namespace footplate
