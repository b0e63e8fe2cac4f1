#include "console/client/prompt/away.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <vector>

#include "console/client/render/event_text.h"
#include "console/client/render/render.h"
#include "console/client/runs/run_index.h"
#include "console/client/runs/run_record.h"
#include "protocol/iso_time.h"
#include "protocol/order.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"
#include "run_files/starts.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kReadOfEvents = 4 << 20;  ///< bytes, from the file's end
constexpr std::size_t kShownOrders = 8;
constexpr std::size_t kKeptRuns = 200;

fs::path folder() {
  const fs::path base = state_folder();
  return base.empty() ? base : base / "left";
}

/// Of one directory: the run's id changes when it is resumed.
fs::path path_for(const fs::path& run_directory) {
  const std::string tail = std::to_string(std::hash<std::string>{}(run_directory.string()) % 1'000'000'007);
  return folder() / (run_directory.filename().string() + "@" + tail + ".json");
}

/// When the run of that directory began: another one may have taken the place of one that was deleted.
std::string first_start(const fs::path& run_directory) {
  const auto starts = read_start_records(run_directory);
  return starts && !starts->empty() ? starts->front().time : std::string();
}

/// The records of runs that were looked at longest ago make room.
void prune() {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder(), error), end; !error && entry != end; entry.increment(error))
    files.emplace_back(entry->last_write_time(error), entry->path());
  if (files.size() <= kKeptRuns) return;
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i + kKeptRuns < files.size(); ++i) fs::remove(files[i].second, error);
}

/// Calls `use` with each event after `time`.
void events_since(const fs::path& path, const std::string& time, auto&& use) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  std::ifstream file(path);
  std::string line;
  if (!error && size > kReadOfEvents) {
    file.seekg(static_cast<std::streamoff>(size - kReadOfEvents));
    std::getline(file, line);  // cut in the middle
  }
  while (std::getline(file, line)) {
    const auto event = parse_line(line);
    if (event && text_of(*event, "time") > time)
      use(text_of(*event, "topic"), event->value("data", Json::object()));
  }
}

/// What happened, in words, besides steps and loss.
class Happened {
 public:
  void operator()(const std::string& topic, const Json& data) {
    if (topic == "order" && text_of(data, "state") == "applied") {
      ++orders_;
      if (shown_.size() < kShownOrders)
        shown_.push_back(given_by(order_user(data), order_session(data)) + ": " + order_effect(data));
    }
    if (topic == "rank" && text_of(data, "state") == "stalled") ++counts_["stall"];
    if (topic == "rank" && text_of(data, "state") == "lost")
      counts_["lost rank"] += static_cast<int>(data.value("ranks", Json::array()).size());
    if (topic == "eval") ++counts_["evaluation"];
    if (topic == "ckpt") ++counts_["checkpoint"];
    if (topic == "warn") ++counts_["warning"];
    if (topic == "end") ++counts_["end"];
  }

  std::string text() const {
    std::string text;
    for (const auto& [what, count] : counts_)
      text += " · " + std::to_string(count) + " " + what + (count == 1 ? "" : "s");
    for (const auto& order : shown_) text += " · " + order;
    if (orders_ > shown_.size()) text += " · and " + std::to_string(orders_ - shown_.size()) + " more orders";
    return text;
  }

 private:
  std::map<std::string, int> counts_;
  std::vector<std::string> shown_;
  std::size_t orders_ = 0;
};

}  // namespace

std::optional<Left> read_left(const fs::path& run_directory) {
  if (folder().empty()) return std::nullopt;
  const auto json = read_json_file(path_for(run_directory));
  if (!json || text_of(*json, "time").empty()) return std::nullopt;
  if (text_of(*json, "first_start") != first_start(run_directory)) return std::nullopt;
  return Left{text_of(*json, "time"), integer_of(*json, "step", 0), number_of(*json, "loss")};
}

void keep_left(const fs::path& run_directory, const Json& status) {
  if (folder().empty() || !status.contains("step")) return;
  std::error_code ignored;
  fs::create_directories(folder(), ignored);
  [[maybe_unused]] const auto written =
      write_json_file(path_for(run_directory), {{"time", iso_time(std::chrono::system_clock::now())},
                                                {"first_start", first_start(run_directory)},
                                                {"step", integer_of(status, "step", 0)},
                                                {"loss", number_to_json(number_of(status, "loss"))}});
  prune();
}

std::string away_text(const fs::path& run_directory, const Left& left, const Json& status) {
  const double loss = number_of(status, "loss");
  std::string text = "away " + duration(seconds_since(left.time)) + ": " + std::to_string(left.step) +
                     " -> " + std::to_string(integer_of(status, "step", 0));
  if (std::isfinite(left.loss) && std::isfinite(loss))
    text += " · loss " + loss_text(left.loss) + " -> " + loss_text(loss);
  Happened happened;
  events_since(run_directory / kEventsFile, left.time, happened);
  return text + happened.text();
}

}  // namespace footplate
