#include "runtime/rank/start_up.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "run_files/file_names.h"
#include "run_files/json_file.h"

namespace footplate {

Result<StartFiles> read_start_files(const std::filesystem::path& run_directory, int start) {
  auto record = read_run_file(run_directory);
  auto config = read_json_file(config_path(run_directory, start));
  if (!record) return fail(ErrorKind::usage, record.error().message);
  if (!config) return fail(ErrorKind::usage, config.error().message);
  return StartFiles{*std::move(record), *std::move(config)};
}

void leave_before_joining(int number, const std::string& why) {
  std::fprintf(stderr, "footplate: process %d, which was to join the run, ends: %s\n", number, why.c_str());
  std::fflush(nullptr);
  std::_Exit(0);
}

}  // namespace footplate
