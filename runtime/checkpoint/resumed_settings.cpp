#include "runtime/checkpoint/resumed_settings.h"

namespace footplate {

bool is_of_order(const std::string& source) {
  return source.starts_with("order");
}

ResumedSettings merge_resumed(const Schema& schema, const Settings& configured, const Settings& saved,
                              std::int64_t saved_in) {
  ResumedSettings result{configured, {}};
  for (const auto& spec : schema.settings) {
    if (!spec.knobs.empty() || !saved.has(spec.name)) continue;
    const Value& before = saved.value(spec.name);
    const Value& now = configured.value(spec.name);
    if (before == now) continue;
    const std::string& given_by = configured.source(spec.name);
    // What applies at a start is in force already: `footplate run` has put live changes into `configured`.
    const bool keep_saved = is_of_order(saved.source(spec.name)) && !is_of_order(given_by) &&
                            start_of_command_line(given_by) <= saved_in && spec.applies != Applies::restart;
    const std::string from = keep_saved ? to_text(now) : to_text(before);
    const std::string to = keep_saved ? to_text(before) : to_text(now);
    if (keep_saved)
      result.settings.set(spec.name, before, saved.source(spec.name));
    else
      result.given[spec.name] = to_json(now);
    result.differences.push_back(
        spec.name + " " + from + " -> " + to +
        (keep_saved ? " (changed live by " + saved.source(spec.name) + ", kept by the checkpoint)"
                    : " (" + given_by + "; the checkpoint had " + from + ")"));
  }
  return result;
}

Error with_differences(Error refusal, const Json& given) {
  std::string found;
  for (const auto& [name, value] : given.items())
    if (name.starts_with("model.") || name.starts_with("optim."))
      found += (found.empty() ? "" : ", ") + name + " = " + value.dump();
  if (found.empty()) return refusal;
  return {ErrorKind::usage, refusal.message + "; other than there: " + found};
}

}  // namespace footplate
