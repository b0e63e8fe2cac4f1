#include "runtime/rank/origin.h"

#include "protocol/json.h"
#include "run_files/checkpoint_folders.h"
#include "run_files/checkpoint_manifest.h"
#include "runtime/checkpoint/resume.h"
#include "runtime/comm/agree.h"

namespace footplate {

Result<Origin> find_origin(const std::filesystem::path& run_directory, const std::string& resume,
                           const std::string& branch,
                           const std::function<void(const std::string&)>& skipped) {
  if (resume.empty()) return Origin{};
  const auto choice = resolve_resume(run_directory, resume);
  if (!choice) return tl::unexpected(choice.error());
  for (const std::string& line : choice->skipped) skipped(line);
  if (!choice->path) return Origin{};
  const std::filesystem::path& path = *choice->path;
  if (!branch.empty()) return Origin{path.string(), branch, true};
  return Origin{path.string(), resume == "auto" ? path.parent_path().filename().string() : "main"};
}

Result<Origin> share(Communicator& communicator, const Result<Origin>& mine) {
  if (auto agreed = agree(communicator, mine ? Result<void>() : tl::unexpected(mine.error())); !agreed)
    return tl::unexpected(agreed.error());
  const std::string told = mine ? to_json(*mine).dump() : std::string();
  return from_rank(communicator, 0, told)
      .and_then([](const std::string& text) { return parse_line(text); })
      .and_then([](const Json& json) {
        Origin origin;
        return read_json(json, origin).map([&] { return origin; });
      });
}

NewestCheckpoint newest_checkpoint(const Origin& origin, const std::filesystem::path& run_directory) {
  const auto step_of = [](const std::filesystem::path& path) {
    const auto manifest = read_checkpoint_manifest(path);
    return manifest ? manifest->step : std::nullopt;
  };
  return [=](std::int64_t at_most) -> Result<CheckpointAt> {
    // Later ones are damaged, and were left out when this start began.
    const auto is_good = [&](const std::filesystem::path& path) {
      return step_of(path).value_or(at_most + 1) <= at_most;
    };
    std::filesystem::path path = newest_in(branch_folder(run_directory, origin.branch), is_good);
    if (path.empty()) path = origin.checkpoint;
    const auto step = path.empty() ? std::nullopt : step_of(path);
    if (!step) return fail(ErrorKind::failed, "there is no checkpoint yet");
    return CheckpointAt{path.string(), *step};
  };
}

}  // namespace footplate
