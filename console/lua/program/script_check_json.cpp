#include "console/lua/program/script_check_json.h"

#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<lua::ScriptToCheck> {
  static void list(auto& field, auto& script) {
    field("path", script.path);
    field("code", script.code);
    field("arguments", script.arguments);
  }
};

template <>
struct FieldsOf<lua::ScriptsToCheck> {
  static void list(auto& field, auto& given) {
    field("schema", given.schema);
    field("settings", given.settings);
    field("user", given.user);
    field("scripts", given.scripts);
  }
};

template <>
struct FieldsOf<lua::ScriptFindings> {
  static void list(auto& field, auto& findings) {
    field("rules", findings.rules);
    field("order", findings.order);
    field("waits", findings.waits);
  }
};

}  // namespace footplate

namespace footplate::lua {

Result<void> read_json(const Json& json, ScriptsToCheck& given) {
  return read_fields(json, given);
}

Json to_json(const CheckedScript& script) {
  Json json = script.findings ? write_fields(*script.findings) : Json::object();
  json["path"] = script.path;
  if (script.error) json["error"] = to_json(*script.error);
  return json;
}

}  // namespace footplate::lua
