#include "console/client/prompt/away.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "console/client/render/render.h"
#include "console/client/runs/run_index.h"
#include "console/client/runs/run_record.h"
#include "protocol/event_line.h"
#include "protocol/iso_time.h"
#include "run_files/json_file.h"
#include "run_files/line_files.h"
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

/// What happened, in words, besides steps and loss.
class Happened {
 public:
  void add(const EventData& data) {
    if (const auto* report = std::get_if<OrderReport>(&data)) add_order(*report);
    if (const auto* change = std::get_if<RankChange>(&data)) {
      if (change->state == RankChangeKind::stalled) ++counts_["stall"];
      if (change->state == RankChangeKind::lost && change->ranks)
        counts_["lost rank"] += static_cast<int>(change->ranks->size());
    }
    if (std::holds_alternative<EvaluationResult>(data)) ++counts_["evaluation"];
    if (std::holds_alternative<SaveResult>(data)) ++counts_["checkpoint"];
    if (std::holds_alternative<Warning>(data)) ++counts_["warning"];
    if (std::holds_alternative<RunResult>(data)) ++counts_["end"];
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
  void add_order(const OrderReport& report) {
    if (report.state != OrderState::applied) return;
    ++orders_;
    if (shown_.size() < kShownOrders) shown_.push_back(order_giver(report) + ": " + order_effect(report));
  }

  std::map<std::string, int> counts_;
  std::vector<std::string> shown_;
  std::size_t orders_ = 0;
};

}  // namespace

std::optional<Left> read_left(const fs::path& run_directory) {
  if (folder().empty()) return std::nullopt;
  const auto json = read_json_file(path_for(run_directory));
  if (!json) return std::nullopt;
  Left left = left_from_json(*json);
  if (left.time.empty() || left.first_start != first_start(run_directory)) return std::nullopt;
  return left;
}

void keep_left(const fs::path& run_directory, const RunStatus& status) {
  if (folder().empty()) return;
  std::error_code ignored;
  fs::create_directories(folder(), ignored);
  const Left left{iso_time(std::chrono::system_clock::now()), first_start(run_directory), status.step,
                  status.loss.value_or(NAN)};
  [[maybe_unused]] const auto written = write_json_file(path_for(run_directory), to_json(left));
  prune();
}

std::string away_text(const fs::path& run_directory, const Left& left, const RunStatus& status) {
  const double loss = status.loss.value_or(NAN);
  std::string text = "away " + duration(seconds_since(left.time)) + ": " + std::to_string(left.step) +
                     " -> " + std::to_string(status.step);
  if (std::isfinite(left.loss) && std::isfinite(loss))
    text += " · loss " + loss_text(left.loss) + " -> " + loss_text(loss);
  Happened happened;
  read_event_lines(
      run_directory,
      [&](const Event& event) {
        if (event.time > left.time) happened.add(event.data);
      },
      kReadOfEvents);
  return text + happened.text();
}

}  // namespace footplate
