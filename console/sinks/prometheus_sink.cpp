#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "console/sinks/replaced_file.h"
#include "console/sinks/sink.h"
#include "protocol/messages/event.h"
#include "protocol/value.h"

// The newest value of each metric, in the text format of Prometheus: for node_exporter's textfile collector.
// The file is replaced by rename, as the collector may read it at any time; a pipe or a device gets them each
// time. It has no timestamps, since the collector skips a file that has some.

namespace footplate::sinks {
namespace {

/// "footplate_train_loss": letters, digits and underscores.
std::string metric_name(const std::string& name) {
  std::string text = "footplate_" + name;
  for (char& one : text)
    if (std::isalnum(static_cast<unsigned char>(one)) == 0) one = '_';
  return text;
}

/// Within the quotes of a label.
std::string escaped(const std::string& text) {
  std::string safe;
  for (const char one : text)
    safe += one == '\n' ? "\\n" : one == '"' || one == '\\' ? std::string("\\") + one : std::string(1, one);
  return safe;
}

std::string prometheus_number(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return shortest(value);
}

bool is_of_evaluation(const MetricsRow& row) {
  return std::any_of(row.values.begin(), row.values.end(), [](const auto& named) {
    return named.first == "eval/seconds" || named.first == "eval/evaluation_failed";
  });
}

class PrometheusSink final : public Sink {
 public:
  explicit PrometheusSink(const SinkTarget& target)
      : path_(target.out), labels_("{run=\"" + escaped(target.run) + "\"} ") {}

  Result<void> write(const MetricsRow& row) override {
    // An evaluation beside training is of an earlier step.
    const auto stretch = std::pair(row.start, row.went_back);
    const double known = stretch == stretch_ ? values_["step"] : 0;
    keep("step", std::max(known, static_cast<double>(row.step)));
    stretch_ = stretch;
    keep("time_seconds", row.time);
    if (is_of_evaluation(row))
      for (const char* name : kNotOfEachEvaluation) values_.erase(name);
    for (const auto& [name, value] : row.values) keep(name, value);
    return {};
  }

  Result<void> flush() override {
    // Once: /dev/stdout leads to a file by a name that the first rename takes away.
    if (!std::exchange(begun_, true)) replaced_ = replaced_file(path_);
    const std::filesystem::path written =
        replaced_ ? std::filesystem::path(replaced_->string() + ".new") : path_;
    std::ofstream file(written, replaced_ ? std::ios::trunc : std::ios::app);
    for (const auto& [name, value] : values_) {
      const std::string& metric = names_.at(name);
      file << "# HELP " << metric << " The newest " << name << " of a run of footplate.\n# TYPE " << metric
           << " gauge\n"
           << metric << labels_ << prometheus_number(value) << "\n";
    }
    file.close();
    std::error_code error;
    if (file && replaced_) std::filesystem::rename(written, *replaced_, error);
    if (file && !error) return {};
    return fail(ErrorKind::failed,
                "can't write " + path_.string() + ": " + (error ? error.message() : std::strerror(errno)));
  }

 private:
  /// A collector refuses a file that has a name twice: where two metrics would get the same one, the one that
  /// comes later has "_2" behind it, as long as the sink lives.
  void keep(const std::string& name, double value) {
    values_[name] = value;
    if (names_.contains(name)) return;
    std::string metric = metric_name(name);
    while (!taken_.insert(metric).second) metric += "_2";
    names_.emplace(name, std::move(metric));
  }

  std::filesystem::path path_;
  bool begun_ = false;                             ///< replaced_ says where to
  std::optional<std::filesystem::path> replaced_;  ///< nothing: what is written goes to path_ as it is
  std::string labels_;
  std::map<std::string, double> values_;
  std::map<std::string, std::string> names_;  ///< of these, for Prometheus
  std::set<std::string> taken_;
  std::pair<int, int> stretch_;  ///< start, and how often it went back
};

}  // namespace

Result<std::unique_ptr<Sink>> open_prometheus(const SinkTarget& target) {
  return std::make_unique<PrometheusSink>(target);
}

}  // namespace footplate::sinks
