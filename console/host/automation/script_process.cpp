#include "console/host/automation/script_process.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "protocol/words.h"

namespace footplate::host {
namespace {

constexpr std::size_t kQuickLosses = 5;
constexpr std::chrono::seconds kQuick{10};
constexpr std::chrono::seconds kBackoff{1};
constexpr std::uint64_t kMostPrinted =
    64U * 1024 * 1024;             ///< bytes of log/job-NAME.log by one start of a job
constexpr int kLinesASecond = 50;  ///< of a job, to everyone; its log has them all
constexpr std::size_t kLongestLine = 2000;
constexpr const char* kOrderOperation = "order";  ///< of a script's requests

void append_to(const std::filesystem::path& path, const std::string& text) {
  std::error_code ignored;
  std::filesystem::create_directories(path.parent_path(), ignored);
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return;
  if (::write(fd, text.data(), text.size()) < 0) ::lseek(fd, 0, SEEK_CUR);  // a full disk: the line is lost
  ::close(fd);
}

std::string session_of(const std::string& job) {
  return job.empty() ? "rules" : "job:" + job;
}

}  // namespace

void ScriptOutput::note(const std::string& text) {
  append_to(log_, text + "\n");
}

void ScriptOutput::print(const ChunkOutput& output, std::chrono::steady_clock::time_point now,
                         const std::function<void(const std::string& line)>& show) {
  const std::string& text = output.text;
  if (printed_ < kMostPrinted) append_to(log_, text);
  printed_ += text.size();
  if (output.stream != OutputStream::out)
    return;  // an order's confirmation: everyone hears of it as an order
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    lines_this_second_ = 0;
  }
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    if (++lines_this_second_ <= kLinesASecond) {
      std::string line(first_bytes(std::string_view(text).substr(start, end - start), kLongestLine));
      if (lines_left_out_ > 0)
        line += " (" + std::to_string(std::exchange(lines_left_out_, 0)) +
                " lines before it are only in log/" + name_ + ".log)";
      show(line);
    } else {
      ++lines_left_out_;
    }
    start = end + 1;
  }
}

ScriptProcess::ScriptProcess(ScriptRun& run, std::uint64_t client, std::string job, Events events)
    : run_(run),
      job_(std::move(job)),
      events_(std::move(events)),
      client_(client, Connection(Fd(), 1)),
      output_(run.directory / "log" / ((job_.empty() ? "rules" : "job-" + job_) + ".log"),
              job_.empty() ? "rules" : "job-" + job_) {}

bool ScriptProcess::start(const Start& start) {
  if (run_.now < start_at_) return false;
  if (!client_.lua) {
    LuaSession::Events events;
    events.request = [this](const SessionRequest& asked) { request(asked); };
    events.output = [this](const ChunkOutput& output) { print(output); };
    events.ended = [this](const ChunkEnd& end) { ended(end); };
    client_.lua = std::make_unique<LuaSession>(run_.limits, std::move(events));
  }
  auto process = run_.ports.process();
  if (!process) {
    run_.ports.log(process.error().message);
    start_at_ = run_.now + kBackoff;
    return false;
  }
  client_.session = session_of(job_);
  client_.user = run_.own.user;
  client_.role = Role::admin;
  SessionHello hello = run_.ports.hello(client_);
  hello.kind = start.kind;
  hello.resumed = start.resumed;
  hello.script = start.script;
  hello.arguments = start.arguments;
  client_.lua->take(*std::move(process), hello);
  return true;
}

/// In the name of the rule whose function asks, where one does.
void ScriptProcess::request(const SessionRequest& request) {
  const bool handler = client_.lua->in_handler() && firing_;
  client_.session = handler ? "rule " + std::to_string(firing_->rule) : session_of(job_);
  client_.user = handler ? firing_->user : run_.own.user;
  client_.role = handler ? firing_->role : events_.role();
  if (handler && request.op == kOrderOperation) firing_->ordered = true;
  run_.ports.request(client_, request);
}

void ScriptProcess::ended(const ChunkEnd& end) {
  if (!end && end.error().lost) {
    run_.ports.forget_waits(client_.id);
    if (losses_.empty() || losses_.back() != run_.now) losses_.push_back(run_.now);
    if (losses_.size() > kQuickLosses) losses_.pop_front();
    if (losses_.size() == kQuickLosses && run_.now - losses_.front() < kQuick)
      start_at_ = run_.now + kBackoff;
  }
  const Json& id = end ? end->id : end.error().id;
  if (id == kChunkId || id == kScriptId) return events_.ended(end);
  if (firing_) events_.handled(*std::exchange(firing_, std::nullopt), end);
}

void ScriptProcess::print(const ChunkOutput& output) {
  const bool rule = job_.empty() && firing_;
  const std::string from = rule ? "rule " + std::to_string(firing_->rule) : job_;
  output_.print(output, run_.now, [&](const std::string& line) { run_.publish(JobLine{from, line}); });
}

void ScriptProcess::handle(Firing firing, const HandleRule& rule) {
  firing.ordered = false;
  const Rule& of = *run_.table.find(firing.rule);
  firing.user = of.user;
  firing.role = of.role;
  firing_ = std::move(firing);
  client_.lua->handle(rule);
}

bool ScriptProcess::has_work() const {
  return firing_.has_value() || std::ranges::any_of(queue_, [this](const Firing& firing) {
           const Rule* rule = run_.table.find(firing.rule);
           return rule != nullptr && rule->on() && rule->has_function;
         });
}

void ScriptProcess::end(const Error& error) {
  if (client_.lua) client_.lua->end(error);
}

void ScriptProcess::send(const ToSession& message) {
  if (client_.lua) client_.lua->send(message);
}

std::optional<ScriptProcess::Clock::time_point> ScriptProcess::deadline() const {
  auto next = client_.lua ? client_.lua->deadline() : std::nullopt;
  if (start_at_ > run_.now && (!next || start_at_ < *next)) next = start_at_;
  return next;
}

void ScriptProcess::on_time() {
  if (client_.lua) client_.lua->on_time(run_.now);
}

}  // namespace footplate::host
