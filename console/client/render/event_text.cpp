#include "console/client/render/event_text.h"

#include <vector>

#include "console/client/render/render.h"
#include "protocol/words.h"

namespace footplate {
namespace {

std::string client_text(const ClientChange& change) {
  return session_text(change.user, change.session) + " " + std::string(to_string(change.state)) +
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

std::string session_text(const std::string& user, const std::string& session) {
  const std::string number = session.starts_with('s') ? session.substr(1) : "";
  const bool is_number = !number.empty() && number.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? user + "#" + number : user;
}

std::optional<std::string> event_text(const EventData& data) {
  if (std::holds_alternative<RunResult>(data)) return std::nullopt;  // the client says itself how a run ended
  if (const auto* change = std::get_if<ClientChange>(&data)) return client_text(*change);
  auto line = event_line(data);
  if (const auto* save = std::get_if<SaveResult>(&data); save != nullptr && line) {
    // Within the run's folder, which everybody here knows: the line is to fit a terminal.
    const std::size_t within = save->path.rfind("checkpoints/");
    const std::size_t at = line->find(save->path);
    if (within != std::string::npos && at != std::string::npos) line->erase(at, within);
  }
  if (const auto* report = std::get_if<OrderReport>(&data); report != nullptr && line && report->order) {
    // One user may have several sessions.
    const std::string giver = order_giver(*report) + ": ";
    const std::string session = session_text(report->order->user, report->order->session) + ": ";
    if (line->starts_with(giver) && giver == report->order->user + ": ")
      line->replace(0, giver.size(), session);
  }
  const auto* measured = std::get_if<NcclMeasurement>(&data);
  return line && measured != nullptr ? *line + collectives_table(*measured) : line;
}

}  // namespace footplate
