#include "console/cli/programs.h"

#include <cstdlib>

#include "run_files/json_file.h"

namespace footplate {

std::filesystem::path program_folder() {
  if (const char* folder = std::getenv("FOOTPLATE_PROGRAMS"); folder != nullptr && *folder != '\0')
    return folder;
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

Result<Schema> load_schema() {
  const auto path = (program_folder() / ".." / "share" / "footplate" / "schema.json").lexically_normal();
  auto json = read_json_file(path);
  if (!json)
    return fail(ErrorKind::failed, "the table of settings is missing: " + json.error().message +
                                       "; make it with: footplate-rank --schema > " + path.string());
  return Schema::from_json(*json);
}

}  // namespace footplate
