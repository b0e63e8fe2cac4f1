#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <memory>

#include "console/client/prompt/attachment.h"
#include "console/client/prompt/chunk_error.h"
#include "console/lua/config/incomplete.h"

// What is typed: chunks for the console, and the client's own words.

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr auto kCompletionTakes = 300ms;  ///< longest a Tab waits for the console
constexpr auto kHelpTakes = 5s;
constexpr double kWatchEvery_s = 2;
constexpr double kLeastWatch_s = 0.2;

constexpr const char* kOwnWords =
    "\\watch [N] EXPR  evaluates EXPR every N seconds (2), until Ctrl-C\n"
    "\\log off|on      metric lines above the prompt\n"
    "\\q               detaches, as Ctrl-D does; the run goes on. run.stop() ends the run\n"
    "?NAME, help NAME  what a setting, an action or a function does; help: all there is\n"
    "_                the last result\n"
    "Tab completes · Ctrl-R searches what was typed · Enter on an empty line ends an unfinished input";

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

bool is_own_word(const std::string& text) {
  return !text.empty() && (text.front() == '\\' || text.front() == '?' || is_help(text));
}

}  // namespace

bool Attachment::is_complete(const std::string& text) {
  return asking_ || is_own_word(trimmed(text)) || !is_incomplete_chunk(text);
}

Completions Attachment::complete(const std::string& before_cursor) {
  Completions completions;
  if (asking_) return completions;
  const auto answer =
      answer_as<CompleteAnswer>(link_.ask_now({"complete", {{"code", before_cursor}}}, kCompletionTakes));
  if (!answer) return completions;
  completions.start = answer->start;
  for (const CompleteAnswer::Item& item : answer->items) completions.items.push_back({item.text, item.note});
  return completions;
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

void Attachment::finish(const Result<Json>& answer, const std::string& code, bool sent) {
  const auto value = answer_as<EvalAnswer>(answer);
  if (value) {
    if (!value->text.empty()) terminal_->show(value->text, Terminal::Kind::value);
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
  if (word == "\\q" || word == "\\quit") {
    left_ = true;
  } else if (word == "\\log" && (rest == "off" || rest == "on")) {
    feed_.show_metrics(rest == "on");
  } else if (word == "\\watch" && !rest.empty()) {
    watch(rest);
  } else if (word == "\\help" || word == "\\?" || word == "\\h") {
    terminal_->show(kOwnWords);
  } else {
    fail_with({ErrorKind::usage, "there is no " + command + "; there are\n" + kOwnWords});
  }
}

void Attachment::watch(const std::string& arguments) {
  char* end = nullptr;
  double every_s = std::strtod(arguments.c_str(), &end);
  const bool given = end != arguments.c_str() && *end == ' ' && every_s > 0;
  const std::string code = given ? trimmed(end) : arguments;
  every_s = given ? std::max(every_s, kLeastWatch_s) : kWatchEvery_s;
  while (evaluate(code) == Outcome::done && wait_seconds(every_s)) {
  }
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
  terminal_->show(answer->text, Terminal::Kind::value);
  if (name.empty()) terminal_->show(std::string("\nat this prompt\n") + kOwnWords, Terminal::Kind::value);
}

}  // namespace footplate
