#include "console/client/render/event_text.h"

#include <cmath>
#include <vector>

#include "console/client/render/render.h"
#include "protocol/json_fields.h"

namespace footplate {
namespace {

std::string client_text(const Json& data) {
  const std::string from = text_of(data, "from");
  return text_of(data, "user") + " " + text_of(data, "state") + (from.empty() ? "" : " (" + from + ")");
}

std::string whole(const Json& row, const char* name) {
  const double value = number_of(row, name);
  return std::isfinite(value) ? rounded(std::trunc(value), 15) : "?";
}

/// A line for each way and size of collectives.
std::string collectives_table(const Json& data) {
  std::vector<std::vector<std::string>> rows{{"collective", "from bytes", "count", "algorithm", "protocol",
                                              "channels", "mean us", "longest", "bus GB/s"}};
  const auto list = data.find("collectives");
  if (list != data.end() && list->is_array())
    for (const Json& row : *list)
      rows.push_back({text_of(row, "collective"), whole(row, "at_least"), whole(row, "count"),
                      text_of(row, "algorithm"), text_of(row, "protocol"), whole(row, "channels"),
                      rounded(number_of(row, "mean_us")), rounded(number_of(row, "most_us")),
                      rounded(number_of(row, "bus_gb_per_s"), 3)});
  if (rows.size() == 1) return ", no collective was told of";
  std::string text = "\n" + table(rows);
  text.pop_back();  // the last newline
  return text;
}

}  // namespace

std::optional<std::string> event_text(const std::string& topic, const Json& data) {
  if (!data.is_object() || topic == "end") return std::nullopt;  // the client says itself how a run ended
  if (topic == "client") return client_text(data);
  auto line = event_line(topic, data);
  if (line && topic == "nccl") return *line + collectives_table(data);
  if (line || is_known_topic(topic)) return line;
  const std::string text = text_of(data, "text");
  return text.empty() ? std::nullopt : std::optional(topic + ": " + text);
}

}  // namespace footplate
