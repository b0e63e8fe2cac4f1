#include "console/client/render/event_text.h"

#include <vector>

#include "console/client/render/render.h"
#include "protocol/words.h"

namespace footplate {
namespace {

std::string client_text(const ClientChange& change) {
  return change.user + " " + std::string(to_string(change.state)) +
         (change.from.empty() ? "" : " (" + change.from + ")");
}

/// A line for each way and size of collectives.
std::string collectives_table(const NcclMeasurement& found) {
  std::vector<std::vector<std::string>> rows{{"collective", "from bytes", "count", "algorithm", "protocol",
                                              "channels", "mean us", "longest", "bus GB/s"}};
  for (const MeasuredCollective& row : found.collectives)
    rows.push_back({row.collective, std::to_string(row.at_least), std::to_string(row.count), row.algorithm,
                    row.protocol, std::to_string(row.channels), rounded(row.mean_us), rounded(row.most_us),
                    rounded(row.bus_gb_per_s, 3)});
  if (rows.size() == 1) return ", no collective was told of";
  std::string text = "\n" + table(rows);
  text.pop_back();  // the last newline
  return text;
}

}  // namespace

std::optional<std::string> event_text(const EventData& data) {
  if (std::holds_alternative<RunResult>(data)) return std::nullopt;  // the client says itself how a run ended
  if (const auto* change = std::get_if<ClientChange>(&data)) return client_text(*change);
  auto line = event_line(data);
  const auto* measured = std::get_if<NcclMeasurement>(&data);
  return line && measured != nullptr ? *line + collectives_table(*measured) : line;
}

}  // namespace footplate
