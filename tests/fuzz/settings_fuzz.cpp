// KEY=VALUE of a command line, values and schemas in JSON: what is accepted means one thing.
#include "protocol/schema.h"
#include "protocol/settings.h"
#include "require.h"
#include "runtime/schema/schema_table.h"

namespace {

using namespace footplate;

void check_value(const Schema& schema, const SettingSpec& spec, std::string_view text) {
  const auto value = schema.check_text(spec.name, text);
  if (!value) {
    require(value.error().message.find(spec.name) != std::string::npos, "the error names the setting");
    return;
  }
  const auto again = schema.check(spec.name, to_json(*value));
  require(again && *again == *value, "an accepted value survives its JSON");
  display(*value, spec.unit);
  // Lua source of a string isn't a command line; everything else reads back from its text.
  if (std::holds_alternative<std::string>(*value)) return;
  const auto from_text = schema.check_text(spec.name, to_text(*value));
  require(from_text && *from_text == *value, "an accepted value survives its text");
}

}  // namespace

/// NAME=VALUE, or JSON.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Schema schema = runtime_schema();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto equals = text.find('=');
  if (equals != std::string_view::npos) {
    const std::string_view name = text.substr(0, equals);
    const SettingSpec* spec = schema.setting(name);
    if (spec == nullptr) {
      schema.unknown_setting(name);
      schema.unknown_action(name);
      spec = &schema.settings[name.size() % schema.settings.size()];
    }
    check_value(schema, *spec, text.substr(equals + 1));
  }
  const auto json = parse_line(text);
  if (!json) return 0;
  for (const auto& action : schema.actions) {
    const auto arguments = schema.check_arguments(action.name, *json);
    if (arguments)
      require(schema.check_arguments(action.name, *arguments).has_value(), "accepted arguments are accepted");
  }
  if (const auto settings = Settings::from_json(*json, schema)) {
    const auto again = Settings::from_json(settings->to_json(), schema);
    require(again && again->digest(schema) == settings->digest(schema), "settings survive their JSON");
    schema.check_combination(*settings);
  }
  if (const auto other = Schema::from_json(*json)) {
    require(Schema::from_json(other->to_json()).has_value(), "a schema survives its JSON");
    for (const auto& spec : other->settings) {
      other->check(spec.name, 1);
      allowed(spec);
    }
  }
  return 0;
}
