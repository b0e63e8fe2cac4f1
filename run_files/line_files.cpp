#include "run_files/line_files.h"

#include <cmath>
#include <fstream>

#include "protocol/json_fields.h"
#include "run_files/file_names.h"

namespace footplate {
namespace {

/// `use` says whether it could read the line.
std::uint64_t read_lines(const std::filesystem::path& path, const std::function<bool(const Json&)>& use,
                         std::uintmax_t most_bytes) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream file(path);
  std::string line;
  if (!error && size > most_bytes) {
    file.seekg(static_cast<std::streamoff>(size - most_bytes));
    std::getline(file, line);  // cut in the middle
  }
  std::uint64_t unreadable = 0;
  while (std::getline(file, line)) {
    const auto json = parse_line(line);
    const bool is_read = json && json->is_object() && use(*json);
    if (!is_read && !file.eof()) ++unreadable;
  }
  return unreadable;
}

std::optional<double> finite(const LoggedMetrics& metrics, const char* name) {
  const auto number = metrics.number(name);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

}  // namespace

std::uint64_t read_metrics_lines(const std::filesystem::path& run_directory,
                                 const std::function<void(const MetricsLine&)>& use,
                                 std::uintmax_t most_bytes) {
  const auto take = [&](const Json& json) {
    MetricsLine line;
    line.metrics.values = json;
    line.step = finite(line.metrics, "step");
    line.time = finite(line.metrics, "time");
    line.branch = text_of(json, "branch");
    line.start = integer_of(json, "start", 0);
    use(line);
    return true;
  };
  return read_lines(run_directory / kMetricsFile, take, most_bytes);
}

std::uint64_t read_event_lines(const std::filesystem::path& run_directory,
                               const std::function<void(const Event&)>& use, std::uintmax_t most_bytes) {
  const auto take = [&](const Json& json) {
    if (!from_word<Topic>(text_of(json, "topic"))) return true;
    Event event;
    if (!read_json(json, event)) return false;
    use(event);
    return true;
  };
  return read_lines(run_directory / kEventsFile, take, most_bytes);
}

std::uint64_t read_start_lines(const std::filesystem::path& run_directory,
                               const std::function<void(const StartRecord&)>& use) {
  const auto take = [&](const Json& json) {
    use(start_from_json(json));
    return true;
  };
  return read_lines(run_directory / kStartsFile, take, kWholeFile);
}

}  // namespace footplate
