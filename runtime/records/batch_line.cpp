#include "runtime/records/batch_line.h"

#include "protocol/event_line.h"
#include "protocol/iso_time.h"

namespace footplate {
namespace {

std::optional<std::string> timed(std::chrono::system_clock::time_point time,
                                 const std::optional<std::string>& said) {
  if (!said) return std::nullopt;
  return iso_seconds(time) + " " + plain(*said);
}

}  // namespace

std::optional<std::string> batch_line(std::chrono::system_clock::time_point time, const EventData& event,
                                      std::int64_t steps) {
  return timed(time, event_line(event, steps));
}

std::optional<std::string> batch_line(std::chrono::system_clock::time_point time, std::string_view topic,
                                      const Json& data, std::int64_t steps) {
  return timed(time, event_line(topic, data, steps));
}

std::string plain(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 … U+009F, which act like ESC on some terminals.
    const bool c1 = byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1) ++i;
    if (byte == '\n' || byte == '\t')
      result += ' ';
    else if (byte >= 0x20 && byte != 0x7f && !c1)
      result += text[i];
    else
      result += '?';
  }
  return result;
}

}  // namespace footplate
