#include "protocol/json.h"

#include <cmath>
#include <limits>

template class nlohmann::basic_json<>;

namespace footplate {
namespace {

/// Nesting depth of JSON text, looked at before parsing so that hostile input can't exhaust the stack.
bool too_deep(std::string_view text, int levels) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > levels) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

/// Builds the value as the library does, but refuses depth before recursing into it: the library's
/// CBOR reader recurses, and throws on a length that can't be, whatever it is told about exceptions.
class BoundedBuilder : public nlohmann::detail::json_sax_dom_parser<Json> {
 public:
  explicit BoundedBuilder(Json& root) : json_sax_dom_parser(root, /*allow_exceptions=*/false) {}
  bool start_object(std::size_t) {
    return ++depth_ <= kMaxLevels && json_sax_dom_parser::start_object(kUnknown);
  }
  bool start_array(std::size_t) {
    return ++depth_ <= kMaxLevels && json_sax_dom_parser::start_array(kUnknown);
  }
  bool end_object() { return --depth_ >= 0 && json_sax_dom_parser::end_object(); }
  bool end_array() { return --depth_ >= 0 && json_sax_dom_parser::end_array(); }

 private:
  /// Lengths are believed element by element, as they arrive.
  static constexpr std::size_t kUnknown = static_cast<std::size_t>(-1);
  int depth_ = 0;
};

}  // namespace

Json number_to_json(double value) {
  if (std::isnan(value)) return "@nan";
  if (std::isinf(value)) return value > 0 ? "@inf" : "@-inf";
  return value;
}

std::optional<double> number_from_json(const Json& json) {
  if (json.is_number()) return json.get<double>();
  if (!json.is_string()) return std::nullopt;
  const auto& text = json.get_ref<const std::string&>();
  if (text == "@nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "@inf") return std::numeric_limits<double>::infinity();
  if (text == "@-inf") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

std::string to_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Json> parse_line(std::string_view line, int levels) {
  if (too_deep(line, levels))
    return fail(ErrorKind::usage, "JSON nested deeper than " + std::to_string(levels) + " levels");
  Json json = Json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return fail(ErrorKind::usage, "not a JSON object on one line");
  return json;
}

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return "usage";
    case ErrorKind::script:
      return "script";
    case ErrorKind::unreachable:
      return "unreachable";
    case ErrorKind::refused:
      return "refused";
    case ErrorKind::timed_out:
      return "timed_out";
    case ErrorKind::failed:
      return "failed";
    case ErrorKind::lost:
      return "lost";
  }
  return "failed";
}

Json to_json(const Error& error) {
  return {{"kind", to_string(error.kind)}, {"message", error.message}};
}

Error error_from_json(const Json& json) {
  if (json.is_string()) return {ErrorKind::failed, json.get<std::string>()};
  const auto text = [&json](const char* name) {
    const bool there = json.is_object() && json.contains(name) && json[name].is_string();
    return there ? json[name].get<std::string>() : std::string();
  };
  Error error{ErrorKind::failed, text("message").empty() ? "no reason given" : text("message")};
  for (const ErrorKind kind : {ErrorKind::usage, ErrorKind::script, ErrorKind::unreachable,
                               ErrorKind::refused, ErrorKind::timed_out})
    if (text("kind") == to_string(kind)) error.kind = kind;
  return error;
}

std::vector<std::uint8_t> to_cbor(const Json& json) {
  return Json::to_cbor(json);
}

Result<Json> from_cbor(const std::uint8_t* data, std::size_t size) {
  Json json;
  BoundedBuilder builder(json);
  if (!Json::sax_parse(data, data + size, &builder, Json::input_format_t::cbor, /*strict=*/true))
    return fail(ErrorKind::failed, "malformed CBOR message");
  return json;
}

}  // namespace footplate
