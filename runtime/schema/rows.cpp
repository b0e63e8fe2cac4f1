#include "runtime/schema/rows.h"

namespace footplate {
namespace {

Type type_of(const SettingRow& row) {
  if (row.or_time) return Type::interval;
  const bool is_choice = !row.choices.empty() && *row.syntax == '\0';
  if (is_choice || !row.variable_values.empty()) return Type::choice;
  constexpr Type kTypes[] = {Type::boolean, Type::integer, Type::number, Type::string, Type::numbers};
  static_assert(std::size(kTypes) == std::variant_size_v<Value>);
  return kTypes[row.value.index()];
}

}  // namespace

void add(std::vector<SettingSpec>& table, std::vector<SettingRow> rows) {
  for (auto& row : rows) {
    auto& spec = table.emplace_back();
    spec.type = type_of(row);
    spec.name = row.name;
    spec.default_value = std::move(row.value);
    spec.unit = row.unit;
    spec.range = row.range;
    spec.usual = row.usual;
    spec.choices = std::move(row.choices);
    spec.variable = row.variable;
    for (const auto& [value, text] : row.variable_values) spec.choices.push_back(value);
    spec.variable_values = std::move(row.variable_values);
    spec.syntax = row.syntax;
    spec.applies = row.applies;
    spec.role = row.role;
    spec.knobs = std::move(row.knobs);
    spec.metric = row.metric;
    spec.aliases = std::move(row.aliases);
    spec.help = row.help;
    spec.example = row.example;
  }
}

void add(std::vector<ActionSpec>& table, std::vector<ActionRow> rows) {
  for (auto& row : rows) {
    auto& spec = table.emplace_back();
    spec.name = row.name;
    spec.role = row.role;
    spec.dangerous = row.dangerous;
    spec.help = row.help;
    spec.example = row.example;
    spec.result = row.result;
    for (auto& param : row.params)
      spec.params.push_back({.name = param.name,
                             .type = param.type,
                             .unit = param.unit,
                             .range = param.range,
                             .choices = std::move(param.choices),
                             .default_value = std::move(param.value),
                             .help = param.help});
  }
}

}  // namespace footplate
