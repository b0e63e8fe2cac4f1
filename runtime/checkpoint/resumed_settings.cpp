#include "runtime/checkpoint/resumed_settings.h"

#include <algorithm>
#include <string_view>

namespace footplate {
namespace {

/// What is fixed for a run and changes no tensor.
constexpr std::string_view kOfTime = "model.step_ms";
constexpr std::size_t kNamed = 4;  ///< settings in a message

bool says_what_is_saved(const SettingSpec& spec) {
  return spec.applies == Applies::fixed && spec.name != kOfTime &&
         (spec.name == "run.task" || spec.name == "train.param_dtype" || spec.name.starts_with("model.") ||
          spec.name.starts_with("optim."));
}

/// train.steps is worked out anew from train.epochs at each start, so a difference is nobody's choice.
void leave_out_steps_of_epochs(ResumedSettings& resumed) {
  const Settings& settings = resumed.settings;
  if (!settings.has("train.epochs") || settings.integer("train.epochs") == 0) return;
  resumed.given.erase("train.steps");
  std::erase_if(resumed.differences,
                [](const std::string& line) { return line.starts_with("train.steps "); });
}

}  // namespace

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
    if (!keep_saved && says_what_is_saved(spec)) result.of_model.push_back({spec.name, from, to, given_by});
    result.differences.push_back(
        spec.name + " " + from + " -> " + to +
        (keep_saved ? " (changed live by " + saved.source(spec.name) + ", kept by the checkpoint)"
                    : " (" + given_by + "; the checkpoint had " + from + ")"));
  }
  leave_out_steps_of_epochs(result);
  return result;
}

Error explain_misfit(Error refusal, const std::vector<GivenOtherwise>& of_model) {
  if (of_model.empty()) return refusal;
  std::string differ;
  std::string words;
  for (std::size_t i = 0; i < std::min(of_model.size(), kNamed); ++i) {
    const GivenOtherwise& one = of_model[i];
    differ += (i == 0 ? "the checkpoint has " : "; ") + one.name + " " + one.saved + ", this start " +
              one.now + " (" + one.source + ")";
    words += (i == 0 ? "" : " ") + one.name + "=" + one.saved;
  }
  if (of_model.size() > kNamed) {
    differ += "; and " + std::to_string(of_model.size() - kNamed) + " more settings differ";
    words += " …";
  }
  return {ErrorKind::usage, differ + "\nits parameters don't fit this model: go on with " + words +
                                ", or begin a new run (another --name, without --resume)"};
}

}  // namespace footplate
