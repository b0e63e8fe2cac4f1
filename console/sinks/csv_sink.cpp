#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <set>

#include "console/sinks/replaced_file.h"
#include "console/sinks/sink.h"
#include "protocol/iso_time.h"
#include "protocol/value.h"

// A table: time, start, branch and step, then a column for each metric. A metric that appears later than the
// first line has its column behind the others, and each earlier line then ends with an empty cell for it.
// A pipe or a device gets the lines one after another: its columns are those of the first lines.

namespace footplate::sinks {
namespace {

namespace fs = std::filesystem;

class CsvSink final : public Sink {
 public:
  explicit CsvSink(fs::path path) : path_(std::move(path)) {}

  Result<void> write(const MetricsRow& row) override {
    for (const auto& [name, value] : row.values)
      if (!stream_.is_open())
        columns_.try_emplace(name, columns_.size());
      else if (!columns_.contains(name) && left_out_.insert(name).second)
        std::fprintf(stderr, "%s: %s came after the header was written, and is left out\n", path_.c_str(),
                     name.c_str());
    rows_.push_back(row);
    return {};
  }

  Result<void> flush() override {
    if (!begun_) table_ = replaced_file(path_);
    begun_ = true;
    auto written = table_ ? to_table() : to_stream();
    if (written) rows_.clear();
    return written;
  }

 private:
  Result<void> unwritten() const {
    return fail(ErrorKind::failed, "can't write " + path_.string() + ": " + std::strerror(errno));
  }

  Result<void> to_stream() {
    if (rows_.empty()) return {};
    if (!stream_.is_open()) {
      stream_.open(path_);
      stream_ << header();
    }
    for (const MetricsRow& row : rows_) stream_ << line_of(row);
    if (!stream_.flush()) return unwritten();
    return {};
  }

  Result<void> to_table() {
    if (!in_file_ || *in_file_ < columns_.size())
      if (auto widened = widen(); !widened) return widened;
    std::ofstream file(*table_, std::ios::in | std::ios::ate);  // a file that is gone isn't made
    for (const MetricsRow& row : rows_) file << line_of(row);
    file.close();
    if (!file) return unwritten();
    return {};
  }

  /// Gives the file all columns. It is replaced by rename: whoever reads it sees whole lines.
  Result<void> widen() {
    const fs::path fresh = table_->string() + ".new";
    std::ofstream wider(fresh, std::ios::trunc);
    wider << header();
    const bool copied = !in_file_ || copy_to(wider);
    wider.close();
    if (!copied || !wider || std::rename(fresh.c_str(), table_->c_str()) != 0) {
      auto failure = unwritten();
      std::error_code error;
      fs::remove(fresh, error);
      return failure;
    }
    in_file_ = columns_.size();
    return {};
  }

  /// The lines so far, with empty cells for the new columns. False: they couldn't be read.
  bool copy_to(std::ofstream& wider) const {
    std::ifstream before(*table_);
    if (!before) return false;
    const std::string more(columns_.size() - *in_file_, ',');
    std::string line;
    std::getline(before, line);  // the header
    while (std::getline(before, line)) wider << line << more << "\n";
    return !before.bad();
  }

  std::string header() const {
    std::vector<std::string> names(columns_.size());
    for (const auto& [name, column] : columns_) names[column] = name;
    std::string text = "time,start,branch,step";
    for (const std::string& name : names) text += "," + name;
    return text + "\n";
  }

  std::string line_of(const MetricsRow& row) const {
    std::vector<std::string> cells(columns_.size());
    for (const auto& [name, value] : row.values)
      if (const auto column = columns_.find(name); column != columns_.end())
        cells[column->second] = shortest(value);
    std::string text = shortest(row.time) + "," + std::to_string(row.start) + "," + row.branch + "," +
                       std::to_string(row.step);
    for (const std::string& cell : cells) text += "," + cell;
    return text + "\n";
  }

  fs::path path_;
  bool begun_ = false;             ///< table_ says where to
  std::optional<fs::path> table_;  ///< nothing: stream_ is written
  std::ofstream stream_;
  std::map<std::string, std::size_t> columns_;  ///< by name: its place, in the order in which they came
  std::set<std::string> left_out_;              ///< metrics without a column, each of which was told once
  std::vector<MetricsRow> rows_;                ///< not written yet
  std::optional<std::size_t> in_file_;          ///< its columns; nothing: there is no file of this export
};

}  // namespace

Result<std::unique_ptr<Sink>> open_csv(const SinkTarget& target) {
  return std::make_unique<CsvSink>(target.out);
}

}  // namespace footplate::sinks
