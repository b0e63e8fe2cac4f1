#include "console/sinks/follow.h"

#include "run_files/file_names.h"

namespace footplate::sinks {

MetricsFile::MetricsFile(std::filesystem::path run_directory) : path_(run_directory / kMetricsFile) {}

Result<std::size_t> MetricsFile::pass_on(Sink& sink) {
  if (!file_.is_open()) file_.open(path_);
  std::size_t count = 0;
  file_.clear();
  for (std::string line; std::getline(file_, line);) {
    rest_ += line;
    if (file_.eof()) break;  // its end hasn't come
    const auto json = parse_line(std::exchange(rest_, {}));
    if (!json || !json->is_object()) continue;
    if (auto written = sink.write(row_of({*json})); !written) return tl::unexpected(written.error());
    ++count;
  }
  if (auto flushed = sink.flush(); !flushed) return tl::unexpected(flushed.error());
  return count;
}

}  // namespace footplate::sinks
