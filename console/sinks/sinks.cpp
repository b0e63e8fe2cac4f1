#include "console/sinks/sink.h"

#include <algorithm>

#include "protocol/schema.h"

namespace footplate::sinks {

MetricsRow row_of(const LoggedMetrics& line) {
  MetricsRow row;
  row.time = line.number("time").value_or(0);
  row.start = static_cast<int>(std::clamp(line.number("start").value_or(0), 0.0, 1e9));
  row.branch = line.text("branch");
  row.step = line.step();
  for (const auto& [name, json] : line.values.items())
    if (name.find('/') != std::string::npos)
      if (const auto value = number_from_json(json)) row.values.emplace_back(name, *value);
  return row;
}

const std::vector<SinkKind>& sink_kinds() {
  static const std::vector<SinkKind> kKinds{
      {"csv", "a table with a column for each metric", "metrics.csv", open_csv},
      {"tensorboard", "event files, a folder for each branch", "tensorboard", open_tensorboard},
      {"prometheus", "the newest values, for node_exporter's textfile collector", "metrics.prom",
       open_prometheus},
  };
  return kKinds;
}

Result<const SinkKind*> find_sink_kind(const std::string& name) {
  std::vector<std::string> names;
  std::string all;
  for (const SinkKind& kind : sink_kinds()) {
    if (kind.name == name) return &kind;
    names.emplace_back(kind.name);
    all += (all.empty() ? "" : ", ") + names.back();
  }
  const std::string near = nearest(name, names);
  return fail(ErrorKind::usage, "there is no format '" + name + "'" +
                                    (near.empty() ? "; there are " + all : "; did you mean " + near + "?"));
}

}  // namespace footplate::sinks
