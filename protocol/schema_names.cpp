#include "protocol/schema_names.h"

#include <algorithm>

#include "protocol/words.h"

namespace footplate {
namespace {

/// Levenshtein distance, where swapping two neighbours ("eveyr") counts once.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1,
                             cost[i - 1][j - 1] + static_cast<std::size_t>(a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
    }
  }
  return cost[a.size()][b.size()];
}

/// "'NCCL_X': NCCL_X is read by nobody", of the first hint that matches; "NCCL_*" knows less than a hint
/// without a star at its end (`open`).
std::string hinted(const Schema& schema, std::string_view name, bool open) {
  for (const std::string& variable : variables_meant(name))
    for (const Hint& hint : schema.hints)
      if (hint.name.ends_with('*') == open && hint.matches(variable))
        return ": " + variable + " " + hint.text;
  return {};
}

/// What a name like NCCL_BUFFSIZ, without a group, may be a misspelt variable of.
std::string near_variable(const Schema& schema, std::string_view name) {
  if (name.find('.') != std::string_view::npos || name.find('_') == std::string_view::npos) return {};
  std::vector<std::string> variables;
  for (const auto& spec : schema.settings)
    if (!spec.variable.empty()) variables.push_back(spec.variable);
  if (const std::string near = nearest(name, variables); !near.empty())
    return "; did you mean " + near + "? It is called " + schema.setting_of_variable(near)->name;
  return hinted(schema, name, true);
}

/// The settings of the group that `name` begins with.
std::vector<std::string> members_of_group(const Schema& schema, std::string_view group) {
  std::vector<std::string> members;
  for (const auto& spec : schema.settings)
    if (spec.name.size() > group.size() && spec.name.compare(0, group.size(), group) == 0 &&
        spec.name[group.size()] == '.')
      members.push_back(spec.name);
  return members;
}

}  // namespace

/// NCCL_BUFFSIZE, nccl.NCCL_BUFFSIZE and nccl.buffsize: the variable that may be meant, and the same with the
/// group before it.
std::vector<std::string> variables_meant(std::string_view name) {
  constexpr std::size_t kLongest = 128;
  if (name.size() > kLongest) return {};
  const auto dot = name.find('.');
  const auto upper = [](std::string_view text) {
    std::string result(text);
    for (char& c : result)
      if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    return result;
  };
  if (dot == std::string_view::npos) return {std::string(name)};
  const std::string own = upper(name.substr(dot + 1));
  return {own, upper(name.substr(0, dot)) + "_" + own};
}

bool stands_for(const SettingSpec& spec, std::string_view name) {
  const std::string_view group = std::string_view(spec.name).substr(0, spec.name.find('.') + 1);
  return std::ranges::any_of(spec.aliases, [&](const std::string& alias) {
    return name == alias || (name.starts_with(group) && name.substr(group.size()) == alias);
  });
}

std::string nearest(std::string_view name, const std::vector<std::string>& candidates) {
  std::string best;
  // A guess that is further away is rather wrong than near, and of a short name anything is near.
  std::size_t best_distance = std::min<std::size_t>(2, std::max<std::size_t>(1, name.size() / 3)) + 1;
  for (const auto& candidate : candidates) {
    const std::size_t longer = std::max(name.size(), candidate.size());
    const std::size_t shorter = std::min(name.size(), candidate.size());
    if (longer - shorter >= best_distance) continue;  // also keeps a name of a megabyte cheap
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string unknown_argument(const std::string& function, const std::string& name,
                             const std::vector<std::string>& known) {
  const std::string near = nearest(name, known);
  return function + " has no argument '" + excerpt(name) + "'; " +
         (!near.empty()   ? "did you mean " + near + "?"
          : known.empty() ? "it takes none"
                          : "it takes " + join(known));
}

bool Hint::matches(std::string_view other) const {
  const auto star = name.find('*');
  if (star == std::string::npos) return other == name;
  const std::string_view head = std::string_view(name).substr(0, star);
  const std::string_view tail = std::string_view(name).substr(star + 1);
  return other.size() > head.size() + tail.size() && other.starts_with(head) && other.ends_with(tail);
}

std::string text_for_unknown_setting(const Schema& schema, std::string_view name) {
  const std::string start = "unknown setting '" + excerpt(name) + "'";
  if ((name == "task" || name.starts_with("task.")) && members_of_group(schema, "task").empty())
    return start +
           "; task.* are the settings of a task of your own: they are known behind run.task = "
           "\"plugin:PATH\" or "
           "\"python:FILE.py\"";
  std::vector<std::string> meant;
  for (const auto& spec : schema.settings)
    if (stands_for(spec, name)) meant.push_back(spec.name);
  if (!meant.empty()) return start + "; it is called " + join(meant, " or ");
  if (schema.action(name) != nullptr)
    return "'" + std::string(name) + "' is an action, not a setting: call it, " + std::string(name) + "()";
  if (const SettingSpec* spec = schema.setting_of_variable(name))
    return start + "; it is called " + spec->name;
  if (const std::string text = hinted(schema, name, false); !text.empty()) return start + text;
  if (const std::string text = near_variable(schema, name); !text.empty()) return start + text;
  if (const std::string near = nearest(name, names_of(schema.settings)); !near.empty())
    return start + "; did you mean " + near + "?";
  const auto group = name.substr(0, name.find('.'));
  const auto members = members_of_group(schema, group);
  if (!members.empty()) return start + "; " + std::string(group) + " has " + join(members);
  return start + "; settings() lists them all";
}

std::string text_for_unquoted_choice(const Schema& schema, std::string_view name) {
  std::vector<std::string> settings;
  for (const auto& spec : schema.settings)
    if (std::find(spec.choices.begin(), spec.choices.end(), name) != spec.choices.end())
      settings.push_back(spec.name);
  if (settings.empty()) return {};
  constexpr std::size_t kShown = 3;
  if (settings.size() > kShown) settings.resize(kShown);
  const std::string word(name);
  return "'" + word + "' is a value of " + join(settings, " and ") + ": write it in quotes, \"" + word + "\"";
}

std::string text_for_bare_setting(const Schema& schema, std::string_view name) {
  std::vector<std::string> meant;
  const auto add = [&meant](const std::string& one) {
    if (std::find(meant.begin(), meant.end(), one) == meant.end()) meant.push_back(one);
  };
  const std::string last_part = "." + std::string(name);
  for (const auto& spec : schema.settings) {
    const bool is_alias = std::find(spec.aliases.begin(), spec.aliases.end(), name) != spec.aliases.end();
    if (!is_alias && !spec.name.ends_with(last_part)) continue;
    if (spec.knobs.empty()) add(spec.name);
    for (const std::string& knob : spec.knobs) add(knob);
  }
  return meant.empty() ? "" : "it is called " + join(meant, " or ");
}

std::string text_for_unknown_action(const Schema& schema, std::string_view name) {
  const auto actions = names_of(schema.actions);
  const std::string near = nearest(name, actions);
  return "unknown action '" + excerpt(name) + "'" +
         (near.empty() ? "; the actions are " + join(actions) : "; did you mean " + near + "?");
}

}  // namespace footplate
