#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "console/client/render/plot.h"
#include "protocol/messages/event.h"

namespace footplate {

/// The metrics of a run by step, and the changes that were applied: from the run's files, then from its
/// events.
class MetricLog {
 public:
  /// Reads metrics.jsonl and events.jsonl, at most the last 16 MiB of each.
  void read(const std::filesystem::path& run_directory);

  /// A metrics line, as in metrics.jsonl. After a resume steps come a second time: the later ones count.
  void add_metrics(const LoggedMetrics& line);
  /// An order report; only applied ones are kept, each once, and of those the newest 2,000.
  void add_order(const OrderReport& report);

  /// The metric that is meant by `name`: itself, train/NAME, or the only one that ends in /NAME; itself where
  /// nothing has been logged. Error (usage): unknown, with the nearest name and the list.
  Result<std::string> find(const std::string& name) const;

  Series series(const std::string& name) const;

 private:
  std::map<std::string, std::map<double, double>> metrics_;
  std::map<std::uint64_t, Series::Mark> marks_;  ///< by the order's number
};

}  // namespace footplate
