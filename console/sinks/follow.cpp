#include "console/sinks/follow.h"

#include "run_files/file_names.h"

namespace footplate::sinks {
namespace {

/// What a sink keeps until it is flushed stays small, however long the file is.
constexpr std::size_t kRowsBetweenFlushes = 4096;

}  // namespace

MetricsFile::MetricsFile(const std::filesystem::path& run_directory) : path_(run_directory / kMetricsFile) {}

Result<std::size_t> MetricsFile::pass_on(Sink& sink) {
  if (!file_.is_open()) file_.open(path_);
  std::size_t count = 0;
  file_.clear();
  file_.seekg(read_);
  for (std::string line; std::getline(file_, line) && !file_.eof();) {
    read_ += static_cast<std::streamoff>(line.size()) + 1;
    const auto json = parse_line(line);
    if (!json || !json->is_object()) continue;
    if (auto written = sink.write(next_row({*json})); !written) return tl::unexpected(written.error());
    if (++count % kRowsBetweenFlushes == 0)
      if (auto flushed = sink.flush(); !flushed) return tl::unexpected(flushed.error());
  }
  if (auto flushed = sink.flush(); !flushed) return tl::unexpected(flushed.error());
  return count;
}

/// A start logs each step of training once, unless it goes back to a checkpoint in place.
MetricsRow MetricsFile::next_row(const LoggedMetrics& line) {
  MetricsRow row = row_of(line);
  if (row.start != start_) {
    start_ = row.start;
    step_ = went_back_ = 0;
  }
  if (line.is_of_training()) {
    if (row.step <= step_) ++went_back_;
    step_ = row.step;
  }
  row.went_back = went_back_;
  return row;
}

}  // namespace footplate::sinks
