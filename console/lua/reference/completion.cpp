#include "console/lua/reference/completion.h"

#include <algorithm>
#include <map>

namespace footplate {
namespace {

constexpr std::size_t kMostItems = 200;

bool is_name_character(char c) {
  return c == '_' || c == '.' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/// Where the name that `code` ends in begins.
std::size_t name_start(std::string_view code) {
  std::size_t start = code.size();
  while (start > 0 && is_name_character(code[start - 1])) --start;
  return start;
}

/// Whether the end of `code` is inside a string or a comment of one line.
bool in_text(std::string_view code) {
  char quote = 0;
  for (std::size_t i = 0; i < code.size(); ++i) {
    const char c = code[i];
    if (c == '\n') quote = 0;
    if (quote == '-') continue;
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '-' && i + 1 < code.size() && code[i + 1] == '-') {
      quote = '-';
    }
  }
  return quote != 0;
}

/// The word before an open brace or bracket at the end: eval.now in "eval.now{ batches = 5, ba".
std::string call_before(std::string_view code) {
  int depth = 0;
  for (std::size_t i = code.size(); i > 0; --i) {
    const char c = code[i - 1];
    if (c == '}' || c == ')') ++depth;
    if ((c != '{' && c != '(') || depth-- > 0) continue;
    std::size_t end = i - 1;
    while (end > 0 && (code[end - 1] == '(' || code[end - 1] == ' ')) --end;
    return std::string(code.substr(name_start(code.substr(0, end)), end - name_start(code.substr(0, end))));
  }
  return {};
}

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

/// Inside name{ … }: parameters of an action, or settings of the group of name.set.
void offer_fields(Candidates& candidates, const Schema& schema, const Settings& settings,
                  const std::string& call) {
  if (const ActionSpec* action = schema.action(call)) {
    for (const auto& param : action->params)
      candidates.offer(param.name + " = ", CompletionKind::parameter, first_line(param.help));
    return;
  }
  if (!call.ends_with(".set")) return;
  const std::string group = call.substr(0, call.size() - 3);
  for (const auto& spec : schema.settings)
    if (spec.name.starts_with(group))
      candidates.offer(spec.name.substr(group.size()) + " = ", CompletionKind::setting,
                       value_note(settings, spec));
}

}  // namespace

Completions complete(const Schema& schema, const Settings& settings, FunctionDocs functions,
                     std::string_view code) {
  const std::size_t start = name_start(code);
  Candidates candidates{std::string(code.substr(start))};
  const bool method = start > 0 && code[start - 1] == ':';
  if (method) {
    candidates.offer("wait()", CompletionKind::method, "waits for the result, and returns it");
    candidates.offer("cancel()", CompletionKind::method, "withdraws the order, or cancels the call");
  } else if (!in_text(code.substr(0, start))) {
    offer_fields(candidates, schema, settings, call_before(code.substr(0, start)));
    for (const auto& spec : schema.settings)
      candidates.offer_name(spec.name, CompletionKind::setting, value_note(settings, spec));
    for (const auto& spec : schema.actions)
      candidates.offer_name(spec.name, CompletionKind::action, "() " + first_line(spec.help));
    for (const auto& function : functions)
      candidates.offer_name(function.name, CompletionKind::function, function.line());
    for (const char* name : lua_names()) candidates.offer_name(name, CompletionKind::function, kLuaNameHelp);
  }
  return {start, candidates.list()};
}

Json completions(const Schema& schema, const Settings& settings, FunctionDocs functions,
                 std::string_view code) {
  return to_json(complete(schema, settings, functions, code));
}

}  // namespace footplate
