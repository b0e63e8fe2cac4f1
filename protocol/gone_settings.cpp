#include "protocol/gone_settings.h"

#include <algorithm>
#include <array>
#include <vector>

#include "protocol/schema_names.h"

namespace footplate {
namespace {

/// Its own settings and actions, its data sets, and what it says it uses of footplate's.
constexpr std::array kOfTask{std::string_view("task."), std::string_view("data.share."),
                             std::string_view("model."), std::string_view("data.corpus")};

/// What earlier versions had.
constexpr std::array kOfEarlierVersions{std::string_view("log.memory")};

bool was_in_earlier_versions(std::string_view name) {
  return std::ranges::find(kOfEarlierVersions, name) != kOfEarlierVersions.end();
}

/// Empty: no task decides whether there is a setting of that name.
std::string_view group_of_task(std::string_view name) {
  const auto found =
      std::ranges::find_if(kOfTask, [&](std::string_view group) { return name.starts_with(group); });
  return found == kOfTask.end() ? std::string_view() : *found;
}

/// What the setting may be called now; empty: nobody knows.
std::string successor(const Schema& schema, const std::string& name) {
  std::vector<std::string> of_group;
  for (const SettingSpec& spec : schema.settings) {
    if (!spec.name.starts_with(group_of_task(name))) continue;
    if (stands_for(spec, name)) return spec.name;
    of_group.push_back(spec.name);
  }
  return nearest(name, of_group);
}

}  // namespace

bool is_gone(const Schema& schema, std::string_view name) {
  const bool may_be = !group_of_task(name).empty() || was_in_earlier_versions(name);
  return may_be && schema.setting(name) == nullptr && schema.action(name) == nullptr;
}

Result<Settings> earlier_settings_from_json(Json json, const Schema& schema, std::vector<GoneSetting>* gone) {
  if (!json.is_object()) return Settings::from_json(json, schema);
  for (auto one = json.begin(); one != json.end();) {
    if (!is_gone(schema, one.key()) || !one->is_object()) {
      ++one;
      continue;
    }
    const bool tells = !was_in_earlier_versions(one.key()) || one->value("source", Json()) != "default";
    if (gone != nullptr && tells) {
      const auto source = one->find("source");
      const bool is_text = source != one->end() && source->is_string();
      gone->push_back(
          {one.key(), one->value("value", Json()), is_text ? source->get<std::string>() : "default"});
    }
    one = json.erase(one);
  }
  return Settings::from_json(json, schema);
}

std::string left_out_text(const Schema& schema, const GoneSetting& gone) {
  const std::string value =
      excerpt(gone.value.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace));
  if (was_in_earlier_versions(gone.name))
    return gone.name + " is left out: this version of footplate doesn't have it. It was " + value + " (" +
           gone.source + ")";
  const std::string start = gone.name + " is left out: the task doesn't declare it any more. ";
  if (gone.was_default()) return start + "It stood at its default, " + value;
  const std::string now = successor(schema, gone.name);
  return start + "It was " + value + " (" + gone.source + ")" +
         (now.empty() ? "" : "; if it is called " + now + " now, set that: " + now + "=" + value);
}

}  // namespace footplate
