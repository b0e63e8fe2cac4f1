#include "runtime/rank/start_up.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>

#include "run_files/json_file.h"

namespace footplate {

Result<StartFiles> read_start_files(const std::filesystem::path& run_directory, int start) {
  auto record = read_json_file(run_directory / "run.json");
  auto config = read_json_file(run_directory / ("config-" + std::to_string(start) + ".json"));
  if (!record) return fail(ErrorKind::usage, record.error().message);
  if (!config) return fail(ErrorKind::usage, config.error().message);
  return StartFiles{*std::move(record), *std::move(config)};
}

std::filesystem::path program_beside(const char* name) {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / name;
}

std::string user_name() {
  const passwd* entry = getpwuid(geteuid());
  return entry != nullptr ? entry->pw_name : std::to_string(geteuid());
}

void leave_before_joining(int number, const std::string& why) {
  std::fprintf(stderr, "footplate: process %d, which was to join the run, ends: %s\n", number, why.c_str());
  std::fflush(nullptr);
  std::_Exit(0);
}

std::uint64_t last_journaled_order(const std::filesystem::path& journal) {
  constexpr std::string_view kPrefix = "-- order ";
  std::uint64_t last = 0;
  std::ifstream file(journal);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, kPrefix.size(), kPrefix) != 0) continue;
    std::uint64_t id = 0;
    std::from_chars(line.data() + kPrefix.size(), line.data() + line.size(), id);
    last = std::max(last, id);
  }
  return last;
}

}  // namespace footplate
