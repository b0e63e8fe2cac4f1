#include "run_files/result_file.h"

#include "run_files/json_file.h"

namespace footplate {

std::optional<RunResult> read_result_file(const std::filesystem::path& path) {
  const auto json = read_json_file(path);
  if (!json || !json->is_object()) return std::nullopt;
  return run_result_from_file(*json);
}

Result<void> write_result_file(const std::filesystem::path& path, const RunResult& result) {
  return write_json_file(path, to_json(result));
}

}  // namespace footplate
