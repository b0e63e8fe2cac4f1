#include "console/lua/reference/completion.h"

#include <algorithm>
#include <map>

#include "console/lua/reference/typed_place.h"
#include "protocol/messages/rules_and_jobs.h"
#include "protocol/messages/run_status.h"

namespace footplate {
namespace {

constexpr std::size_t kMostItems = 200;

class Candidates {
 public:
  explicit Candidates(std::string word) : word_(std::move(word)) {}

  void offer(const std::string& text, CompletionKind kind, const std::string& note) {
    if (text.starts_with(word_) && items_.size() < kMostItems) items_.try_emplace(text, kind, note);
  }

  /// A dotted name that is longer than the word: its group first.
  void offer_name(const std::string& name, CompletionKind kind, const std::string& note) {
    const auto dot = name.find('.', word_.size());
    if (dot == std::string::npos || word_.find('.') != std::string::npos)
      offer(name, kind, note);
    else
      offer(name.substr(0, dot + 1), CompletionKind::group, "");
  }

  std::vector<Completion> list() const {
    std::vector<Completion> list;
    for (const auto& [text, rest] : items_) list.push_back({text, rest.first, rest.second});
    return list;
  }

 private:
  std::string word_;
  std::map<std::string, std::pair<CompletionKind, std::string>> items_;
};

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string value_note(const Settings& settings, const SettingSpec& spec) {
  return to_text(settings.value(spec.name)) + (spec.unit.empty() ? "" : " " + spec.unit) + " · " +
         first_line(spec.help);
}

/// What tables of functions may have that no schema describes.
struct TableFields {
  std::string_view function;
  std::array<const char*, 7> fields;
};
constexpr std::array kTableFields{
    TableFields{"run.wait", {"step", "event", "seconds", "timeout_s"}},
    TableFields{"try", {"set", "steps", "metric", "better_by", "keep_if", "abandon_if", "save"}},
    TableFields{"after", {"minutes", "seconds", "steps", "fn"}},
    TableFields{"nccl.try", {"set", "steps", "keep_if", "better_by"}},
    TableFields{"nccl.tune", {"budget_steps"}},
};

// Names of Lua's that say what may be in their quotes and brackets.
constexpr std::string_view kAt = "at", kOn = "on", kMetrics = "metrics";
constexpr std::string_view kRulesMetrics = "m";  // what a rule's function usually calls them

/// What run.wait{ event = … } knows of (AwaitedEvent in console/host/run/host_state.h).
constexpr std::array kAwaitedEvents{"log", "eval", "ckpt", "warn", "order", "nccl", "profile", "stop"};

/// Everything that is offered, at one place.
class Offer {
 public:
  Offer(const Schema& schema, const Settings& settings, FunctionDocs functions, const CompletionNames& names,
        const TypedPlace& place)
      : schema_(schema),
        settings_(settings),
        functions_(functions),
        names_(names),
        place_(place),
        candidates_(place.word) {}

  std::vector<Completion> list() {
    if (place_.kind == TypedPlace::Kind::comment) return {};
    if (place_.kind == TypedPlace::Kind::string) {
      in_string();
    } else if (place_.before == ':') {
      candidates_.offer("wait()", CompletionKind::method, "waits for the result, and returns it");
      candidates_.offer("cancel()", CompletionKind::method, "withdraws the order, or cancels the call");
    } else {
      fields();
      names();
    }
    return candidates_.list();
  }

 private:
  void values(const std::vector<std::string>& values, const std::string& note) {
    for (const std::string& value : values) candidates_.offer(value, CompletionKind::value, note);
  }

  /// The setting that `name` means at this place: optim.kind, and kind in set{ optim = { kind =.
  const SettingSpec* setting_here(const std::string& name) const {
    if (const SettingSpec* spec = schema_.setting(name)) return spec;
    return schema_.setting(group_here() + name);
  }

  /// "optim." inside of optim.set{ and of optim = {; empty: in no group's table.
  std::string group_here() const {
    const auto* inner = place_.innermost();
    if (inner == nullptr || inner->bracket != '{') return {};
    if (inner->word.ends_with(".set")) return inner->word.substr(0, inner->word.size() - 3);
    const std::string group = inner->word + ".";
    const bool is_group = std::any_of(schema_.settings.begin(), schema_.settings.end(),
                                      [&](const auto& spec) { return spec.name.starts_with(group); });
    return inner->assigned && is_group ? group : "";
  }

  /// Inside of set{, at(20000, { and set = {: of a table of groups.
  bool in_groups() const {
    const auto* inner = place_.innermost();
    if (inner == nullptr || inner->bracket != '{') return false;
    if (inner->word == "set" || (inner->assigned && inner->word == "expect")) return true;
    return inner->word.empty() && place_.open.size() > 1 && place_.open[place_.open.size() - 2].word == kAt;
  }

  void in_string() {
    const std::string& field = place_.assigned;
    if (!field.empty()) return in_value(field);
    const std::string& call = place_.call;
    if (place_.before == '[' && (call == kMetrics || call == kRulesMetrics))
      return values(names_.metrics, "a metric");
    if (call.starts_with("ckpt.")) return checkpoints();
    if (call == kOn) {
      for (const auto& [event, word] : EnumWords<RuleEvent>::kAll)
        candidates_.offer(std::string(word), CompletionKind::value, "an event");
    }
    if (call == "help" || call == "settings") names();
  }

  /// What may be in quotes behind `field` =.
  void in_value(const std::string& field) {
    if (const SettingSpec* spec = setting_here(field); spec != nullptr && !spec->choices.empty()) {
      const std::string now = to_text(settings_.value(spec->name));
      for (const std::string& choice : spec->choices)
        candidates_.offer(choice, CompletionKind::value,
                          now == choice || now == '"' + choice + '"' ? "is now" : "");
      return;
    }
    const auto* inner = place_.innermost();
    const std::string call = inner == nullptr ? "" : inner->word;
    if (const ActionSpec* action = schema_.action(call))
      for (const auto& param : action->params)
        if (param.name == field) values(param.choices, first_line(param.help));
    if (field == "tag" || field == "ref" || field == "from") checkpoints();
    if (field == "metric") values(names_.metrics, "a metric");
    if (field == "event" && call == "run.wait")
      values({kAwaitedEvents.begin(), kAwaitedEvents.end()}, "an event");
    if (field == "run.state" || field == "state")
      for (const auto& [state, word] : EnumWords<RunState>::kAll)
        candidates_.offer(std::string(word), CompletionKind::value, "");
  }

  void checkpoints() {
    values(names_.tags, "a tag");
    values({"best", "latest"}, "a checkpoint");
  }

  /// Of the table that this is in.
  void fields() {
    const auto* inner = place_.innermost();
    if (inner == nullptr || inner->bracket == '[') return;
    if (const ActionSpec* action = schema_.action(inner->word); action != nullptr && !inner->assigned)
      for (const auto& param : action->params)
        candidates_.offer(param.name + " = ", CompletionKind::parameter, first_line(param.help));
    for (const TableFields& known : kTableFields)
      if (known.function == inner->word && !inner->assigned)
        for (const char* field : known.fields)
          if (field != nullptr) candidates_.offer(std::string(field) + " = ", CompletionKind::parameter, "");
    const std::string group = group_here();
    for (const auto& spec : schema_.settings) {
      if (!group.empty() && spec.name.starts_with(group))
        candidates_.offer(spec.name.substr(group.size()) + " = ", CompletionKind::setting,
                          value_note(settings_, spec));
      if (in_groups())
        candidates_.offer(spec.name.substr(0, spec.name.find('.')) + " = { ", CompletionKind::group, "");
    }
  }

  void names() {
    for (const auto& spec : schema_.settings)
      candidates_.offer_name(spec.name, CompletionKind::setting, value_note(settings_, spec));
    for (const auto& spec : schema_.actions)
      candidates_.offer_name(spec.name, CompletionKind::action, "() " + first_line(spec.help));
    for (const auto& function : functions_)
      candidates_.offer_name(function.name, CompletionKind::function, function.line());
    for (const char* name : lua_names()) candidates_.offer_name(name, CompletionKind::function, kLuaNameHelp);
    for (const std::string_view table : {kMetrics, kRulesMetrics})
      if (place_.word.starts_with(std::string(table) + ".")) metrics_of(std::string(table) + ".");
    if (place_.word.starts_with("store."))
      for (const std::string& name : names_.stored)
        candidates_.offer("store." + name, CompletionKind::value, "stored");
  }

  /// metrics.loss for train/loss: a metric by its last part, where no other one ends so or it is of train/.
  void metrics_of(const std::string& table) {
    std::map<std::string, std::vector<std::string>> by_end;
    for (const std::string& name : names_.metrics) by_end[name.substr(name.rfind('/') + 1)].push_back(name);
    for (const auto& [end, all] : by_end) {
      const auto meant = std::find(all.begin(), all.end(), "train/" + end);
      if (all.size() == 1 || meant != all.end())
        candidates_.offer(table + end, CompletionKind::value, meant != all.end() ? *meant : all.front());
    }
  }

  const Schema& schema_;
  const Settings& settings_;
  FunctionDocs functions_;
  const CompletionNames& names_;
  const TypedPlace& place_;
  Candidates candidates_;
};

}  // namespace

Completions complete(const Schema& schema, const Settings& settings, FunctionDocs functions,
                     std::string_view code, const CompletionNames& names) {
  const TypedPlace place = typed_place(code);
  return {place.start, Offer(schema, settings, functions, names, place).list(),
          place.kind != TypedPlace::Kind::code};
}

Json completions(const Schema& schema, const Settings& settings, FunctionDocs functions,
                 std::string_view code, const CompletionNames& names) {
  return to_json(complete(schema, settings, functions, code, names));
}

}  // namespace footplate
