#include "runtime/rank/origin.h"

#include "protocol/json.h"
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

}  // namespace footplate
