#include "console/host/run/metrics_tail.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace footplate::host {
namespace {

constexpr std::streamoff kTail = 64 * 1024;

}  // namespace

void merge_metrics(LoggedMetrics& latest, const LoggedMetrics& line) {
  const bool of_evaluation = line.is_of_evaluation();
  if (of_evaluation)
    for (const char* name : kNotOfEachEvaluation) latest.values.erase(name);
  // An evaluation beside training is of an earlier step than what is newest.
  const std::int64_t newest = latest.step();
  latest.values.update(line.values);
  if (of_evaluation && line.step() < newest) latest.values["step"] = newest;
}

LoggedMetrics latest_metrics(const std::filesystem::path& path) {
  LoggedMetrics latest;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return latest;
  const std::streamoff start = std::max<std::streamoff>(0, file.tellg() - kTail);
  file.seekg(start);
  std::string line;
  if (start > 0) std::getline(file, line);  // the rest of one
  while (std::getline(file, line)) {
    LoggedMetrics metrics;
    if (const auto json = parse_line(line); json && read_json(*json, metrics)) merge_metrics(latest, metrics);
  }
  return latest;
}

}  // namespace footplate::host
