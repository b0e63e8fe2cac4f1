#include "protocol/messages/fields.h"
#include "runtime/control/welcome.h"

namespace footplate {

template <>
struct FieldsOf<Welcome> {
  static void list(auto& field, auto& welcome) {
    field("settings", welcome.settings);
    field("at_start", welcome.at_start);
    field("store", welcome.store);
    field("pending", welcome.pending);
    field("applied", welcome.applied);
    field("last_applied", welcome.last_applied);
    field("participant", welcome.participant);
    field("wanted", welcome.wanted);
    field("recoveries", welcome.recoveries);
    field("started", welcome.started);
    field("ran_s", welcome.ran_s);
  }
};

std::string to_text(const Welcome& welcome) {
  return write_fields(welcome).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Welcome> welcome_from_text(const std::string& text) {
  return parse_line(text).and_then([](const Json& json) -> Result<Welcome> {
    Welcome welcome;
    if (auto read = read_fields(json, welcome); !read) return tl::unexpected(read.error());
    return welcome;
  });
}

}  // namespace footplate
