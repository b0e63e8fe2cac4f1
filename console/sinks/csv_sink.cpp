#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>

#include "console/sinks/sink.h"
#include "protocol/iso_time.h"
#include "protocol/value.h"

// A table: time, start, branch and step, then a column for each metric. A metric that appears later than the
// first line gets its column too, so the file is made anew then.

namespace footplate::sinks {
namespace {

class CsvSink final : public Sink {
 public:
  explicit CsvSink(std::filesystem::path path) : path_(std::move(path)) {}

  Result<void> write(const MetricsRow& row) override {
    for (const auto& [name, value] : row.values)
      if (columns_.try_emplace(name, columns_.size()).second) is_new_ = true;
    rows_.push_back(row);
    return {};
  }

  Result<void> flush() override {
    if (is_new_) written_ = 0;
    std::ofstream file(path_, written_ == 0 ? std::ios::trunc : std::ios::app);
    if (written_ == 0) file << header();
    for (; written_ < rows_.size(); ++written_) file << line_of(rows_[written_]);
    is_new_ = false;
    file.close();
    if (file) return {};
    return fail(ErrorKind::failed, "can't write " + path_.string() + ": " + std::strerror(errno));
  }

 private:
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
  std::vector<MetricsRow> rows_;
  std::size_t written_ = 0;
  bool is_new_ = true;  ///< a column that the file lacks
};

}  // namespace

Result<std::unique_ptr<Sink>> open_csv(const SinkTarget& target) {
  return std::make_unique<CsvSink>(target.out);
}

}  // namespace footplate::sinks
