#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string_view>

#include "console/client/prompt/attachment.h"
#include "console/client/prompt/chunk_error.h"
#include "console/client/prompt/own_names.h"
#include "console/client/render/text.h"
#include "console/lua/config/incomplete.h"
#include "console/lua/reference/help.h"
#include "protocol/words.h"

// What is typed: chunks for the console, and the client's own words.

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr auto kCompletionTakes = 300ms;  ///< longest a Tab waits for the console
constexpr auto kHelpTakes = 5s;
constexpr double kWatchEvery_s = 2;
constexpr double kLeastWatch_s = 0.2;
constexpr double kMostWatch_s = 86400;

/// "14:03:22", here.
std::string clock_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::localtime_r(&now, &parts);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%H:%M:%S", &parts);
  return text.data();
}

struct OwnWord {
  const char* word;
  const char* arguments;
  const char* help;
};
/// What the client does itself.
constexpr std::array kBackslashWords{
    OwnWord{"\\watch", "[N] EXPR", "evaluates EXPR every N seconds (2), until Ctrl-C"},
    OwnWord{"\\log", "off|on", "metric lines above the prompt"},
    OwnWord{"\\hints", "off|on", "what is shown dim behind the cursor; Right takes it"},
    OwnWord{"\\help", "", "these"},
    OwnWord{"\\q", "", "detaches, as quit, exit and Ctrl-D do; the run goes on. run.stop() ends the run"},
};

std::string own_words() {
  constexpr std::size_t kColumn = 18;
  const auto row = [kColumn](std::string name, const char* help) {
    name.resize(std::max(name.size() + 1, kColumn), ' ');
    return name + help + "\n";
  };
  std::string text;
  for (const OwnWord& own : kBackslashWords)
    text += row(std::string(own.word) + (*own.arguments == '\0' ? "" : " ") + own.arguments, own.help);
  return text + row("?NAME, help NAME", "what a name does, or what has that word; help all: all there is") +
         row("_", "the last result") +
         "Tab completes · Ctrl-R searches what was typed · Enter on an empty row ends an unfinished input";
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

/// "help log.every", and "help" alone; help(…) is Lua.
bool is_help(const std::string& text) {
  return text == "help" ||
         (text.starts_with("help ") && text.find_first_of("(=,\"'", 5) == std::string::npos);
}

/// What people type elsewhere to leave; here the run goes on.
bool is_farewell(const std::string& text) {
  constexpr std::array<std::string_view, 5> kFarewells{"quit", "exit", "quit()", "exit()", ":q"};
  return std::find(kFarewells.begin(), kFarewells.end(), text) != kFarewells.end();
}

bool is_own_word(const std::string& text) {
  return !text.empty() && (text.front() == '\\' || text.front() == '?' || is_help(text) || is_farewell(text));
}

/// Of "?log.ev" and "help log.ev", where the name begins; 0 for anything else.
std::size_t help_prefix(const std::string& text) {
  const std::size_t word = text.find_first_not_of(" \t");
  if (word == std::string::npos) return 0;
  std::size_t behind = 0;
  if (text[word] == '?') behind = word + 1;
  if (text.compare(word, 5, "help ") == 0) behind = word + 5;
  return behind == 0 ? 0 : std::min(text.find_first_not_of(" \t", behind), text.size());
}

/// \\words, and what follows them, where that isn't Lua.
Completions backslash_completions(const std::string& typed) {
  Completions completions;
  const std::size_t space = typed.find(' ');
  for (const OwnWord& own : kBackslashWords) {
    const std::string word = own.word;
    if (space == std::string::npos && word.starts_with(typed))
      completions.items.push_back({word + (*own.arguments == '\0' ? "" : " "), own.help});
    if (space == std::string::npos || typed.substr(0, space) != word ||
        std::string_view(own.arguments) != "off|on")
      continue;
    completions.start = space + 1;
    for (const char* choice : {"off", "on"})
      if (std::string(choice).starts_with(typed.substr(space + 1))) completions.items.push_back({choice, ""});
  }
  return completions;
}

bool is_name_of_one_part(std::string_view word) {
  return word.find_first_of(".:") == std::string_view::npos;
}

/// Of the answer to `typed`: the rest of the only name that there is, what a whole one means, or what a table
/// may have.
TypingHint hint_of(const CompleteAnswer& answer, const std::string& typed) {
  constexpr std::size_t kLeast = 2;  // letters of a name
  if (answer.start > typed.size()) return {};
  const std::string word = typed.substr(answer.start);
  std::string fields;
  for (const CompleteAnswer::Item& item : answer.items) {
    if (item.text == word) return {"", item.note.empty() ? "" : "  " + item.note};
    fields += item.text.ends_with(" = ") ? " " + item.text.substr(0, item.text.size() - 3) : "";
  }
  if (word.empty()) return {"", fields.empty() ? "" : " " + fields};
  if (answer.items.size() != 1 || word.size() < kLeast || !answer.items.front().text.starts_with(word))
    return {};
  const CompleteAnswer::Item& only = answer.items.front();
  return {only.text.substr(word.size()), only.note.empty() ? "" : "  " + only.note};
}

}  // namespace

bool Attachment::is_complete(const std::string& text) {
  return asking_ || is_own_word(trimmed(text)) || !is_incomplete_chunk(text);
}

Completions Attachment::complete(const std::string& before_cursor) {
  if (asking_) return {};
  if (before_cursor.starts_with('\\') && !before_cursor.starts_with("\\watch "))
    return backslash_completions(before_cursor);
  // Behind a word of the client's own comes Lua, or a name.
  const std::size_t own =
      before_cursor.starts_with('\\') ? before_cursor.find(' ') + 1 : help_prefix(before_cursor);
  const std::string code = before_cursor.substr(own);
  Completions completions;
  const auto answer =
      answer_as<CompleteAnswer>(link_.ask_now({"complete", {{"code", code}}}, kCompletionTakes));
  if (!answer || answer->start > code.size()) return completions;
  completions.start = own + answer->start;
  for (const CompleteAnswer::Item& item : answer->items) completions.items.push_back({item.text, item.note});
  const std::string word = code.substr(answer->start);
  const bool has_table_before =
      answer->start > 0 && (code[answer->start - 1] == ':' || code[answer->start - 1] == '.');
  if (!answer->in_text && !has_table_before && is_name_of_one_part(word))
    for (const std::string& name : own_names_)
      if (name.starts_with(word)) completions.items.push_back({name, "yours"});
  return completions;
}

std::optional<TypingHint> Attachment::hint(const std::string& text) {
  if (asking_ || text.front() == '\\') return std::nullopt;
  if (text == hinted_) return hint_;
  if (hint_open_ || !link_.connected()) return TypingHint{};
  hint_open_ = true;
  const std::string code = text.substr(help_prefix(text));
  link_.ask({"complete", {{"code", code}}}, [this, text, code](const Result<Json>& value) {
    hint_open_ = false;
    const auto answer = answer_as<CompleteAnswer>(value);
    hinted_ = text;
    hint_ = answer ? hint_of(*answer, code) : TypingHint{};
  });
  return TypingHint{};
}

bool Attachment::nothing_to_cancel() {
  if (!asking_) terminal_->show("still training · Ctrl-D detaches · run.stop() ends");
  return asking_;
}

std::optional<Attachment::End> Attachment::use(const std::string& input) {
  const std::string text = trimmed(input);
  if (text.empty()) return std::nullopt;
  terminal_->remember(input);
  if (is_own_word(text)) {
    error_.reset();
    meta(text);
    if (error_ && !terminal_->is_interactive()) return End::failed;
    return left_ ? std::optional(End::detached) : std::nullopt;
  }
  const Outcome outcome = evaluate(input);
  if (outcome == Outcome::left) return over_ ? End::run_over : End::detached;
  if (outcome != Outcome::done && !terminal_->is_interactive()) return over_ ? End::run_over : End::failed;
  return std::nullopt;
}

Attachment::Outcome Attachment::evaluate(const std::string& code) {
  // Shared: the answer may come after this function was left.
  const auto answer = std::make_shared<std::optional<Result<Json>>>();
  bool interrupted = false;
  const bool sent = link_.connected();
  chunk_ended_ = false;
  question_.reset();
  own_.chunk_begins(code);
  link_.ask({"eval", {{"code", code}, {"name", kChunkName}, {"asks", terminal_->is_interactive()}}},
            [this, answer](Result<Json> value) {
              *answer = std::move(value);
              chunk_ended_ = true;
            });
  while (!*answer) {
    if (over_) return Outcome::left;
    if (question_) {
      answer_question();
      continue;
    }
    switch (terminal_->wait()) {
      case Terminal::Woken::interrupted:
        interrupted = true;
        if (terminal_->is_interactive()) terminal_->show("^C");
        link_.ask({"interrupt"}, [](const Result<Json>&) {});
        break;
      case Terminal::Woken::ended:
        return Outcome::left;
      case Terminal::Woken::something:
        break;
    }
  }
  if (!watching_) terminal_->set_live("");
  finish(**answer, code, sent);
  if (**answer) return Outcome::done;
  return interrupted ? Outcome::interrupted : Outcome::failed;
}

/// Everything but y and yes, in whatever case, is no, Ctrl-C and Ctrl-D too; and nothing where the chunk ends
/// meanwhile.
void Attachment::answer_question() {
  const ChunkQuestion question = *std::exchange(question_, std::nullopt);
  asking_ = true;
  update_prompt();
  terminal_->show(question.text);
  const Terminal::Input input = terminal_->read();
  asking_ = false;
  update_prompt();
  std::string said = trimmed(input.text);
  std::transform(said.begin(), said.end(), said.begin(), [](unsigned char c) { return std::tolower(c); });
  link_.ask({"answer", {{"question", question.question}, {"yes", said == "y" || said == "yes"}}},
            [](const Result<Json>&) {});
}

void Attachment::show_value(const std::string& text) {
  if (!text.empty()) terminal_->show(text, Terminal::Kind::value);
}

void Attachment::finish(const Result<Json>& answer, const std::string& code, bool sent) {
  const auto value = answer_as<EvalAnswer>(answer);
  if (value) {
    add_own_names(code, own_names_);
    if (watching_)
      watched_ = value->text;
    else if (!terminal_->is_interactive())
      show_value(value->text);
    else if (!own_.is_told(value->text))
      show_value(fit_columns(value->text, terminal_->width()));
    own_.shown_value(value->text);
    return;
  }
  Error error = value.error();
  if (error.kind == ErrorKind::unreachable && sent)
    error.message += "; whether the chunk was applied, orders() will tell";
  error_ = error;
  const std::string prefix = std::string(kChunkName) + ":";
  const std::int64_t line =
      error.message.starts_with(prefix) ? std::atoi(error.message.c_str() + prefix.size()) : 0;
  terminal_->show(chunk_error_text(error, line, code), Terminal::Kind::error);
}

void Attachment::fail_with(const Error& error) {
  error_ = error;
  terminal_->show("error: " + error.message, Terminal::Kind::error);
}

void Attachment::meta(const std::string& command) {
  if (command.front() == '?') return help(trimmed(command.substr(1)));
  if (is_help(command)) return help(trimmed(command.substr(4)));
  const auto space = command.find(' ');
  const std::string word = command.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : trimmed(command.substr(space));
  if (word == "\\q" || word == "\\quit" || is_farewell(command)) {
    left_ = true;
  } else if (word == "\\log" && (rest == "off" || rest == "on")) {
    feed_.show_metrics(rest == "on");
  } else if (word == "\\hints" && (rest == "off" || rest == "on")) {
    terminal_->show_hints(rest == "on");
  } else if (word == "\\watch" && !rest.empty()) {
    watch(rest);
  } else if (word == "\\help" || word == "\\?" || word == "\\h") {
    terminal_->show(own_words());
  } else {
    fail_with({ErrorKind::usage, "there is no " + command + "; there are\n" + own_words()});
  }
}

void Attachment::watch(const std::string& arguments) {
  char* end = nullptr;
  double every_s = std::strtod(arguments.c_str(), &end);
  const bool given = end != arguments.c_str() && *end == ' ' && every_s > 0;
  const std::string code = given ? trimmed(end) : arguments;
  every_s = given ? std::clamp(every_s, kLeastWatch_s, kMostWatch_s) : kWatchEvery_s;
  watching_ = terminal_->has_live();
  const std::string how = "every " + rounded(every_s) + " s, until Ctrl-C: " + code;
  std::string last;
  while (evaluate(code) == Outcome::done) {
    last = clock_time() + " · " + how + "\n" + watched_;
    if (watching_) terminal_->set_live(last);
    if (!wait_seconds(every_s)) break;
  }
  terminal_->set_live("");
  if (std::exchange(watching_, false) && !last.empty()) terminal_->show(last, Terminal::Kind::value);
}

/// False where somebody ended the wait.
bool Attachment::wait_seconds(double seconds) {
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  while (Clock::now() < end) {
    status_due_ = std::min(status_due_, end);  // wakes us then
    if (terminal_->wait() != Terminal::Woken::something || over_) return false;
  }
  return true;
}

void Attachment::help(const std::string& name) {
  const auto answer = answer_as<HelpAnswer>(link_.ask_now({"help", {{"name", name}}}, kHelpTakes));
  if (!answer) return fail_with(answer.error());
  if (name == kHelpOfAll) return terminal_->page(answer->text + "\n\nat this prompt\n" + own_words());
  show_value(terminal_->is_interactive() ? fit_columns(answer->text, terminal_->width()) : answer->text);
}

}  // namespace footplate
