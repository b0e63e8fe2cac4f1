#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>

#include "console/sinks/sink.h"
#include "protocol/iso_time.h"
#include "protocol/value.h"

// A table: time, start, branch and step, then a column for each metric. A metric that appears later than the
// first line has its column behind the others, and each earlier line then ends with an empty cell for it.

namespace footplate::sinks {
namespace {

class CsvSink final : public Sink {
 public:
  explicit CsvSink(std::filesystem::path path) : path_(std::move(path)) {}

  Result<void> write(const MetricsRow& row) override {
    for (const auto& [name, value] : row.values) columns_.try_emplace(name, columns_.size());
    rows_.push_back(row);
    return {};
  }

  Result<void> flush() override {
    if (!in_file_ || *in_file_ < columns_.size())
      if (auto widened = widen(); !widened) return widened;
    std::ofstream file(path_, std::ios::app);
    for (const MetricsRow& row : rows_) file << line_of(row);
    file.close();
    if (!file) return unwritten();
    rows_.clear();
    return {};
  }

 private:
  Result<void> unwritten() const {
    return fail(ErrorKind::failed, "can't write " + path_.string() + ": " + std::strerror(errno));
  }

  /// Gives the file all columns. It is replaced by rename: whoever reads it sees whole lines.
  Result<void> widen() {
    const std::filesystem::path fresh = path_.string() + ".new";
    std::ofstream wider(fresh, std::ios::trunc);
    wider << header();
    if (in_file_) {
      std::ifstream before(path_);
      const std::string more(columns_.size() - *in_file_, ',');
      std::string line;
      std::getline(before, line);  // the header
      while (std::getline(before, line)) wider << line << more << "\n";
    }
    wider.close();
    if (!wider || std::rename(fresh.c_str(), path_.c_str()) != 0) return unwritten();
    in_file_ = columns_.size();
    return {};
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
    for (const auto& [name, value] : row.values) cells[columns_.at(name)] = shortest(value);
    std::string text = shortest(row.time) + "," + std::to_string(row.start) + "," + row.branch + "," +
                       std::to_string(row.step);
    for (const std::string& cell : cells) text += "," + cell;
    return text + "\n";
  }

  std::filesystem::path path_;
  std::map<std::string, std::size_t> columns_;  ///< by name: its place, in the order in which they came
  std::vector<MetricsRow> rows_;                ///< not written yet
  std::optional<std::size_t> in_file_;          ///< its columns; nothing: there is no file of this export
};

}  // namespace

Result<std::unique_ptr<Sink>> open_csv(const SinkTarget& target) {
  return std::make_unique<CsvSink>(target.out);
}

}  // namespace footplate::sinks
