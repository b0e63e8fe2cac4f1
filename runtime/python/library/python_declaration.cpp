#include "runtime/python/library/python_declaration.h"

#include <limits>

#include "protocol/json.h"

namespace footplate {
namespace {

double bound(const Json& json, const char* name, double otherwise) {
  const Json& value = json.at(name);
  return value.is_null() ? otherwise : value.get<double>();
}

v1::SettingDecl setting_from(const Json& json) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return {.name = json.at("name"),
          .initial = json.at("initial"),
          .help = json.at("help"),
          .unit = json.at("unit"),
          .min = bound(json, "min", -kInfinity),
          .max = bound(json, "max", kInfinity),
          .usual_min = bound(json, "usual_min", -kInfinity),
          .usual_max = bound(json, "usual_max", kInfinity),
          .choices = json.at("choices"),
          .aliases = json.at("aliases"),
          .applies = json.at("applies")};
}

v1::ActionDecl action_from(const Json& json) {
  v1::ActionDecl action{.name = json.at("name"),
                        .help = json.at("help"),
                        .role = json.at("role"),
                        .dangerous = json.at("dangerous")};
  for (const Json& param : json.at("params"))
    action.params.push_back({.name = param.at("name"),
                             .kind = param.at("kind"),
                             .initial = param.at("initial"),
                             .help = param.at("help")});
  return action;
}

}  // namespace

v1::Declaration declaration_from(const std::string& text) {
  const Json json = Json::parse(text);
  v1::Declaration declaration{
      .unit = json.at("unit"), .uses = json.at("uses"), .cacheable = json.at("cacheable")};
  for (const Json& setting : json.at("settings")) declaration.settings.push_back(setting_from(setting));
  for (const Json& action : json.at("actions")) declaration.actions.push_back(action_from(action));
  for (const Json& metric : json.at("metrics"))
    declaration.metrics.push_back(
        {.name = metric.at("name"), .mean = metric.at("mean"), .in_training = metric.at("in_training")});
  for (const Json& set : json.at("sets"))
    declaration.sets.push_back({.name = set.at("name"), .share = set.at("share"), .help = set.at("help")});
  return declaration;
}

}  // namespace footplate
