#include "console/cli/script_findings_json.h"

#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<ScriptFindings::Rule> {
  static void list(auto& field, auto& rule) {
    field("text", rule.text);
    field("line", rule.line);
  }
};

template <>
struct FieldsOf<ScriptFindings> {
  static void list(auto& field, auto& found) {
    field("path", found.path);
    field("order", found.order);
    field("rules", found.rules);
    field("waits", found.waits);
  }
};

Result<void> read_json(const Json& json, ScriptFindings& found) {
  if (auto read = read_fields(json, found); !read) return read;
  if (const auto error = json.find("error"); error != json.end()) found.error = error_from_json(*error);
  return {};
}

}  // namespace footplate
