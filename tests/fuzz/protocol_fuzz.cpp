// The line protocol: any bytes, in any pieces, as lines, JSON, orders, confirmations and CBOR.
#include "protocol/cbor_map.h"
#include "protocol/frame.h"
#include "protocol/json.h"
#include "protocol/order.h"
#include "require.h"

namespace {

using namespace footplate;

void read_json(const Json& json) {
  const auto again = parse_line(to_line(json));
  require(again.has_value(), "what was written can be read");
  require(to_line(*again) == to_line(json), "and says the same");
  if (const auto order = order_from_json(json)) {
    const auto second = order_from_json(to_json(*order));
    require(second && to_line(to_json(*second)) == to_line(to_json(*order)), "an order survives its JSON");
  }
  if (const auto applied = applied_from_json(json)) {
    const auto second = applied_from_json(to_json(*applied));
    require(second && to_line(to_json(*second)) == to_line(to_json(*applied)),
            "a confirmation survives its JSON");
  }
}

}  // namespace

/// The first byte says how long the pieces are in which the rest arrives.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::size_t piece = data[0] + std::size_t{1};
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  LineReader reader;
  std::string whole;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    reader.append(bytes.substr(at, piece));
    for (;;) {
      const auto line = reader.next();
      if (!line || !*line) break;
      require((*line)->find('\n') == std::string::npos, "a line has no newline");
      whole += **line + "\n";
      if (const auto json = parse_line(**line)) read_json(*json);
    }
  }
  require(bytes.substr(0, whole.size()) == whole, "lines are the bytes, in order");
  require(bytes.find('\n', whole.size()) == std::string_view::npos, "and all of them");
  const auto map = CborMap::of(std::span(data + 1, size - 1));
  const auto json = from_cbor(data + 1, size - 1);
  require(!map || json, "what is read where it lies can be read as JSON");
  if (json) {
    to_line(*json);
    const auto order = order_from_json(*json);
    if (order) to_cbor(to_json(*order));
  }
  return 0;
}
