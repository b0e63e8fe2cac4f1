#include "console/client/prompt/attachment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "console/client/link/find_run.h"
#include "console/client/prompt/away.h"
#include "console/client/prompt/prompt.h"
#include "console/client/render/event_text.h"
#include "console/client/render/render.h"
#include "console/client/render/text.h"
#include "console/client/runs/process_table.h"
#include "protocol/user_name.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr auto kStatusEvery = 1s;
constexpr auto kKeepEvery = 60s;   ///< of the record of where this user left, for a client that is killed
constexpr auto kAnswerTakes = 3s;  ///< at most, of a console that is well
constexpr auto kPatientFor = 2s;   ///< with a console that is gone, before saying so

/// "pts/3", "pts/3, ssh from 10.0.0.2": where this client is typed into.
std::string where_from() {
  const char* terminal = ::ttyname(STDIN_FILENO);
  std::string from = terminal == nullptr ? "" : terminal;
  if (from.starts_with("/dev/")) from.erase(0, 5);
  const char* ssh = std::getenv("SSH_CONNECTION");
  if (ssh == nullptr) return from;
  const std::string peer(ssh);
  return from + (from.empty() ? "" : ", ") + "ssh from " + peer.substr(0, peer.find(' '));
}

/// What a note or an event is about, without the seconds that pass: the same trouble is told once.
std::string trouble(std::string text) {
  constexpr std::string_view kSilent = "silent: rank ";
  if (text.starts_with(kSilent)) return text.substr(0, text.find_first_not_of("0123456789", kSilent.size()));
  std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  return text;
}

}  // namespace

Attachment::Attachment(const RunRecord& run, Options options)
    : name_(run.name()),
      directory_(run.directory),
      options_(std::move(options)),
      link_(run.directory,
            {[this](const ConsoleHello& hello) { connected(hello); }, [this](const Error&) { lost(); },
             [this](const ConsoleLine& line) { said(line); }}),
      terminal_(Terminal::open(*this)) {
  update_prompt();
}

Attachment::~Attachment() {
  if (greeted_ && status_) keep_left(directory_, *status_);
}

Attachment::End Attachment::run() {
  if (auto end = wait_for_console()) return *end;
  for (;;) {
    const Terminal::Input input = terminal_->read();
    switch (input.kind) {
      case Terminal::Input::Kind::over:
        return End::run_over;
      case Terminal::Input::Kind::end:
        return End::detached;
      case Terminal::Input::Kind::cancelled:
        break;
      case Terminal::Input::Kind::text:
        if (auto end = use(input.text)) return *end;
        break;
    }
  }
}

/// Nothing once somebody may type.
std::optional<Attachment::End> Attachment::wait_for_console() {
  const auto deadline = Clock::now() + kConsoleStarts;
  const bool starting = static_cast<bool>(options_.startup_lines);
  look();
  while (!greeted_) {
    if (starting)
      if (const std::string lines = options_.startup_lines(); !lines.empty()) terminal_->show(lines);
    if (starting && !was_connected_ && options_.startup_ended()) return End::not_started;
    // What is being started may still have the record of its last start: startup_ended() tells of its end.
    if (over_ && (!starting || was_connected_)) return End::run_over;
    if (!starting && (link_.refusal() || Clock::now() >= deadline)) {
      if (link_.refusal())
        error_ = *link_.refusal();
      else if (!link_.why_not().empty())
        error_ =
            Error{ErrorKind::unreachable, not_live(link_.record()).message + " (" + link_.why_not() + ")"};
      return End::unreachable;
    }
    if (terminal_->wait() != Terminal::Woken::something) return End::detached;
  }
  return std::nullopt;
}

std::chrono::milliseconds Attachment::patience() const {
  if (more_) return 0ms;
  auto next = std::min(Clock::now() + link_.patience(), status_due_);
  if (const auto due = feed_.due()) next = std::min(next, *due);
  return std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()));
}

void Attachment::look() {
  more_ = link_.look();
  const auto now = Clock::now();
  if (now >= status_due_) ask_status();
  if (greeted_ && status_ && now >= keep_due_) {
    keep_due_ = now + kKeepEvery;
    keep_left(directory_, *status_);
  }
  if (const std::string lines = feed_.take(now); !lines.empty() && terminal_->is_interactive())
    terminal_->show(lines, Terminal::Kind::event);
  if (lost_since_ && now - *lost_since_ > kPatientFor && !is_over()) {
    lost_since_.reset();
    terminal_->show("the console doesn't answer; trying again until it does, the run goes on without it" +
                    (link_.why_not().empty() ? "" : " (" + printable(link_.why_not()) + ")"));
  }
  tell_silence();
  update_prompt();
  over_ = is_over();
}

/// A run that ended is over once nobody is left to start it again.
bool Attachment::is_over() const {
  const RunRecord& record = link_.record();
  if (link_.connected() || record.life == Life::live) return false;
  const bool supervised =
      !record.launcher_elsewhere() && is_footplate_process(record.launcher(), record.run.launcher_started);
  return !record.directory.empty() && !supervised;
}

void Attachment::update_prompt() {
  terminal_->set_prompt(asking_ ? "really? [y/N] "
                                : printable(prompt_text(name_, status_, role_, link_state())));
}

LinkState Attachment::link_state() const {
  if (!link_.connected()) return LinkState::lost;
  return asked_since_ && Clock::now() - *asked_since_ > kAnswerTakes ? LinkState::silent
                                                                     : LinkState::connected;
}

/// A console that hangs, in a file system that doesn't answer, say, keeps its connections.
void Attachment::tell_silence() {
  const bool silent = link_state() == LinkState::silent;
  if (silent && !told_silence_)
    terminal_->show("the console hasn't answered for " + std::to_string(kAnswerTakes.count()) +
                    " s; the run goes on without it");
  told_silence_ = silent;
}

// --- the link ---

void Attachment::connected(const ConsoleHello& hello) {
  session_ = hello.session;
  role_ = hello.role;
  feed_.own_session(session_);
  lost_since_.reset();
  behind_ = true;
  if (!options_.role.empty()) {
    link_.ask({"role", {{"role", options_.role}}}, [this](const Result<Json>& answer) {
      if (const auto given = answer_as<RoleAnswer>(answer))
        role_ = given->role;
      else
        terminal_->show("error: " + given.error().message, Terminal::Kind::error);
    });
  }
  link_.ask({"attach", {{"from", where_from()}}}, [this, again = was_connected_](const Result<Json>& answer) {
    const auto others = answer_as<AttachAnswer>(answer);
    if (others && !again && terminal_->is_interactive()) show_others(*others);
  });
  link_.ask({"subscribe", {{"topics", {"*"}}}}, [](const Result<Json>&) {});
  link_.ask({"orders"}, [this](const Result<Json>& answer) {
    if (const auto orders = answer_as<OrdersAnswer>(answer)) announce_missed(orders->reports);
  });
  link_.ask({"status"}, [this](const Result<Json>& answer) {
    const auto status = answer_as<RunStatus>(answer);
    if (!status) return;
    know(*status);
    greet(*status);
  });
  if (was_connected_)
    terminal_->show("connected again: a new session, the variables of the old one are gone");
  was_connected_ = true;
}

void Attachment::greet(const RunStatus& status) {
  if (std::exchange(greeted_, true) || !terminal_->is_interactive()) return;
  const std::string text = render_status(status, name_);
  const std::size_t notes = status.notes.size();
  std::size_t end = 0;
  for (std::size_t lines = 0; lines <= notes && end != std::string::npos; ++lines)
    end = text.find('\n', end == 0 ? 0 : end + 1);
  terminal_->show(text.substr(0, end));
  if (const auto left = read_left(directory_)) terminal_->show(away_text(directory_, *left, status));
  if (role_ == Role::view) terminal_->show("this session has the role view: it reads, and changes nothing");
  terminal_->show("help · Tab · ?log.every · Ctrl-D leaves, the run goes on", Terminal::Kind::event);
  // From here on this user has seen it.
  keep_due_ = {};
}

void Attachment::show_others(const AttachAnswer& answer) {
  std::string text;
  for (const AttachAnswer::Other& other : answer.others)
    text += (text.empty() ? "also here: " : ", ") + session_text(other.user, other.session) +
            (other.from.empty() ? "" : " (" + other.from + ")");
  if (!text.empty()) terminal_->show(text + "; you are " + session_text(user_name(), session_));
}

/// Orders that were applied while there was no connection. On the first one, only their numbers are taken.
void Attachment::announce_missed(const std::vector<OrderReport>& orders) {
  std::uint64_t newest = last_order_;
  std::string lines;
  for (auto report = orders.rbegin(); report != orders.rend(); ++report) {
    newest = std::max(newest, report->id);
    if (!greeted_ || report->id <= last_order_ || report->state != OrderState::applied) continue;
    if (const auto text = event_text(*report)) lines += *text + "\n";
  }
  last_order_ = newest;
  if (!lines.empty()) terminal_->show(lines, Terminal::Kind::event);
}

void Attachment::lost() {
  lost_since_ = Clock::now();
}

void Attachment::said(const ConsoleLine& line) {
  if (const auto* output = std::get_if<ChunkOutput>(&line)) {
    return show_output(*output);
  }
  if (const auto* question = std::get_if<ChunkQuestion>(&line)) question_ = *question;
  if (const auto* event = std::get_if<Event>(&line)) happened(*event);
  if (const auto* event = std::get_if<UnknownEvent>(&line)) feed_.push(*event, Clock::now());
}

void Attachment::show_output(const ChunkOutput& output) {
  switch (output.stream) {
    case OutputStream::out:
      return terminal_->show(output.text, Terminal::Kind::value);
    case OutputStream::progress:
      return terminal_->set_live(output.text);
    case OutputStream::talk:
      break;
  }
  const std::string left = terminal_->is_interactive() ? own_.talk(output.text) : output.text;
  if (!left.empty()) terminal_->show(left, Terminal::Kind::talk);
}

void Attachment::happened(const Event& event) {
  // Not an evaluation's line: one beside training is of a step that lies behind.
  if (const auto* metrics = std::get_if<LoggedMetrics>(&event.data);
      metrics != nullptr && status_ && metrics->number("step") && metrics->is_of_training())
    status_->step = metrics->step();
  if (const auto* report = std::get_if<OrderReport>(&event.data))
    last_order_ = std::max(last_order_, report->id);
  const auto* change = std::get_if<RunChange>(&event.data);
  if (change != nullptr && status_) status_->state = change->state;
  const auto* of_rank = std::get_if<RankChange>(&event.data);
  if (change != nullptr || of_rank != nullptr) status_due_ = {};
  if (const auto* note = std::get_if<Note>(&event.data)) own_.shown_note(note->text);
  const bool news = of_rank == nullptr ? !own_.is_told(event.data) : is_news(*of_rank);
  if (news) feed_.push(event, Clock::now());
}

void Attachment::ask_status() {
  status_due_ = Clock::now() + kStatusEvery;
  if (!link_.connected() || !greeted_ || asked_since_) return;
  asked_since_ = Clock::now();
  link_.ask({"status"}, [this](const Result<Json>& answer) {
    asked_since_.reset();
    if (const auto status = answer_as<RunStatus>(answer)) know(*status);
  });
}

void Attachment::know(const RunStatus& status) {
  // A status may be a moment older than the last metrics; a run that really goes on from an earlier step says
  // so twice.
  const std::int64_t shown = status_ ? status_->step : 0;
  const bool behind = status.step < shown;
  status_ = status;
  if (behind && !std::exchange(behind_, true)) status_->step = shown;
  if (!behind) behind_ = false;
  std::string news;
  std::set<std::string> noted;
  for (const std::string& note : status.notes) {
    noted.insert(trouble(note));
    if (!noted_.contains(trouble(note)) && !told_.contains(trouble(note))) news += "! " + note + "\n";
  }
  noted_ = std::move(noted);
  if (greeted_ && !news.empty() && terminal_->is_interactive())
    terminal_->show(news, Terminal::Kind::warning);
}

/// A rank that falls silent is an event and a note of the status: whichever comes first is told.
bool Attachment::is_news(const RankChange& change) {
  if (change.state != RankChangeKind::stalled) {
    told_.clear();
    return true;
  }
  return told_.insert(trouble(change.text)).second && !noted_.contains(trouble(change.text));
}

}  // namespace footplate
