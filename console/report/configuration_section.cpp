#include <algorithm>
#include <set>

#include "console/report/chart.h"
#include "console/report/html.h"
#include "console/report/sections.h"

namespace footplate::report {
namespace {

const char* const kDefaultSource = "default";

/// What is shown of a setting of a run: its value, and what it has become.
struct ShownSetting {
  std::string first;  ///< empty: the run's files lack it
  std::string now;
  std::string source;
  bool differs = false;  ///< from the default
};

std::string with_unit(const Value& value, const SettingSpec* spec) {
  const bool has_unit = spec != nullptr && !spec->unit.empty() && !std::holds_alternative<std::string>(value);
  return shown(value) + (has_unit ? " " + spec->unit : "");
}

ShownSetting shown_setting(const RunHistory& run, const std::string& name, const Schema& schema) {
  const SettingSpec* spec = schema.setting(name);
  const auto first = run.configured.find(name);
  const auto now = run.now.find(name);
  ShownSetting setting;
  if (first != run.configured.end()) {
    setting.first = with_unit(first->second.value, spec);
    setting.source = first->second.source;
  }
  if (now != run.now.end()) setting.now = with_unit(now->second.value, spec);
  const std::string usual = spec != nullptr ? with_unit(spec->default_value, spec) : "";
  const auto is_usual = [&](const std::string& text, const RecordedSettings::const_iterator& found) {
    return text.empty() || (spec != nullptr ? text == usual : found->second.source == kDefaultSource);
  };
  setting.differs = !is_usual(setting.first, first) || !is_usual(setting.now, now);
  return setting;
}

/// Those of all runs that somebody can set.
std::vector<std::string> setting_names(const std::vector<RunHistory>& runs, const Schema& schema) {
  std::set<std::string> names;
  for (const RunHistory& run : runs)
    for (const auto* settings : {&run.configured, &run.now})
      for (const auto& [name, setting] : *settings) names.insert(name);
  std::erase_if(names, [&](const std::string& name) {
    const SettingSpec* spec = schema.setting(name);
    return spec != nullptr && !spec->knobs.empty();
  });
  return {names.begin(), names.end()};
}

std::string default_text(const std::string& name, const Schema& schema) {
  const SettingSpec* spec = schema.setting(name);
  return spec == nullptr ? "" : with_unit(spec->default_value, spec);
}

std::string change_text(const ShownSetting& setting) {
  return setting.now.empty() || setting.now == setting.first ? setting.first
                                                             : setting.first + " → " + setting.now;
}

std::string of_one_run(const RunHistory& run, const Schema& schema) {
  Table table({"setting", "value", "default", "set by"});
  for (const std::string& name : setting_names({run}, schema)) {
    const ShownSetting setting = shown_setting(run, name, schema);
    if (setting.differs)
      table.row(
          cell(name) + cell(change_text(setting), "long") + cell(default_text(name, schema), "quiet") +
          cell(setting.source == kDefaultSource && setting.now != setting.first ? "an order" : setting.source,
               "quiet"));
  }
  if (table.empty()) return run.configured.empty() ? "" : paragraph("All settings have their defaults.");
  return paragraph("What differs from the defaults. An arrow: the first value, and the one now.", "quiet") +
         table.html("config-1.json");
}

std::string of_several_runs(const std::vector<RunHistory>& runs, const std::vector<BranchView>& views,
                            const Schema& schema) {
  std::vector<std::string> columns = {"setting"};
  for (const RunHistory& run : runs) columns.push_back(run.record.name());
  Table different(columns), same({"setting", "value", "default"});
  for (const std::string& name : setting_names(runs, schema)) {
    std::vector<std::string> texts;
    bool differs = false;
    for (const RunHistory& run : runs) {
      const ShownSetting setting = shown_setting(run, name, schema);
      texts.push_back(change_text(setting));
      differs = differs || setting.differs;
    }
    if (std::all_of(texts.begin(), texts.end(), [&](const auto& text) { return text == texts.front(); })) {
      if (differs)
        same.row(cell(name) + cell(texts.front(), "long") + cell(default_text(name, schema), "quiet"));
      continue;
    }
    std::string cells = cell(name);
    for (std::size_t i = 0; i < runs.size(); ++i)
      cells += "<td class=\"" + color_class(color_of_run(views, i)) + "\">" + clean(texts[i]) + "</td>";
    different.row(cells);
  }
  std::string html = different.empty() ? paragraph("The runs have the same settings.")
                                       : paragraph("What differs between the runs.", "quiet") +
                                             different.html("config-1.json");
  if (!same.empty())
    html += "<details><summary>What they share, and differs from the defaults</summary>\n" +
            same.html("config-1.json") + "</details>\n";
  return html;
}

}  // namespace

std::string configuration_section(const std::vector<RunHistory>& runs, const std::vector<BranchView>& views,
                                  const Schema& schema) {
  const std::string html =
      runs.size() == 1 ? of_one_run(runs.front(), schema) : of_several_runs(runs, views, schema);
  return html.empty() ? "" : heading("Configuration") + html;
}

}  // namespace footplate::report
