#include "console/host/run/metrics_tail.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace footplate::host {
namespace {

constexpr std::streamoff kTail = 64 * 1024;

}  // namespace

void merge_metrics(Json& latest, const Json& line) {
  const bool of_evaluation = line.contains("eval/loss") || line.contains("eval/evaluation_failed");
  if (of_evaluation)
    for (const char* trouble : {"eval/evaluation_failed", "eval/reason", "eval/retries", "eval/partial",
                                "eval/batches", "eval/batches_wanted"})
      latest.erase(trouble);
  const auto step = latest.find("step");
  // An evaluation beside training is of an earlier step than what is newest.
  const bool earlier = step != latest.end() && of_evaluation && line.value("step", Json()) < *step;
  const Json newest = earlier ? *step : Json();
  latest.update(line);
  if (earlier) latest["step"] = newest;
}

Json latest_metrics(const std::filesystem::path& path) {
  Json latest = Json::object();
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return latest;
  const std::streamoff start = std::max<std::streamoff>(0, file.tellg() - kTail);
  file.seekg(start);
  std::string line;
  if (start > 0) std::getline(file, line);  // the rest of one
  while (std::getline(file, line))
    if (const auto metrics = parse_line(line); metrics && metrics->is_object())
      merge_metrics(latest, *metrics);
  return latest;
}

}  // namespace footplate::host
