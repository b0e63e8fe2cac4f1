#include "runtime/records/rank_log.h"

#include <spdlog/async.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/basic_file_sink.h>

#include <array>
#include <atomic>
#include <thread>
#include <utility>

namespace footplate {
namespace {

constexpr std::size_t kQueuedMessages = 8192;

constexpr std::array<std::pair<std::string_view, spdlog::level::level_enum>, 5> kLevels{
    {{"trace", spdlog::level::trace},
     {"debug", spdlog::level::debug},
     {"info", spdlog::level::info},
     {"warn", spdlog::level::warn},
     {"error", spdlog::level::err}}};

/// Behind the file's: how many lines that has had. An empty queue doesn't tell: the last line has left it
/// before it is written.
class CountingSink final : public spdlog::sinks::sink {
 public:
  void log(const spdlog::details::log_msg& /*line*/) override { ++lines_; }
  void flush() override {}
  void set_pattern(const std::string& /*pattern*/) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter> /*formatter*/) override {}
  std::uint64_t lines() const { return lines_; }

 private:
  std::atomic<std::uint64_t> lines_{0};
};

}  // namespace

struct Log::State {
  void write(spdlog::level::level_enum level, const std::string& text) {
    if (!logger->should_log(level)) return;
    ++queued;
    logger->log(level, spdlog::string_view_t(text));
  }

  // Destroyed after the pool: its thread holds references to the logger for as long as lines are queued, and
  // must not be the one to drop the last (ThreadSanitizer can't see that spdlog does so properly).
  std::shared_ptr<spdlog::async_logger> logger;
  std::shared_ptr<spdlog::details::thread_pool> pool;
  std::shared_ptr<std::atomic<std::uint64_t>> errors = std::make_shared<std::atomic<std::uint64_t>>(0);
  std::shared_ptr<CountingSink> written = std::make_shared<CountingSink>();
  std::atomic<std::uint64_t> queued{0};  ///< lines so far
};

Log::Log(std::unique_ptr<State> state) : state_(std::move(state)) {}

Log::~Log() {
  if (const auto lost = dropped(); lost > 0)
    warn(std::to_string(lost) + " lines were lost: the log's disk was slower than the log");
}

Result<std::unique_ptr<Log>> Log::open(const std::filesystem::path& file, std::string_view level) {
  auto state = std::make_unique<State>();
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
    sink->set_formatter(std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %l %v",
                                                                    spdlog::pattern_time_type::utc));
    // A pool and a logger of its own: spdlog's global ones outlive main and know nothing of the run.
    state->pool = std::make_shared<spdlog::details::thread_pool>(kQueuedMessages, 1);
    state->logger = std::make_shared<spdlog::async_logger>(
        "rank", spdlog::sinks_init_list{std::move(sink), state->written}, state->pool,
        spdlog::async_overflow_policy::overrun_oldest);
  } catch (const spdlog::spdlog_ex& error) {
    return fail(ErrorKind::failed, std::string("can't open the log: ") + error.what());
  }
  state->logger->set_error_handler([errors = state->errors](const std::string&) { ++*errors; });
  state->logger->flush_on(spdlog::level::info);
  std::unique_ptr<Log> log(new Log(std::move(state)));
  log->set_level(level);
  return log;
}

void Log::set_level(std::string_view level) {
  for (const auto& [name, value] : kLevels)
    if (name == level) state_->logger->set_level(value);
}

void Log::trace(const std::string& text) {
  state_->write(spdlog::level::trace, text);
}
void Log::debug(const std::string& text) {
  state_->write(spdlog::level::debug, text);
}
void Log::info(const std::string& text) {
  state_->write(spdlog::level::info, text);
}
void Log::warn(const std::string& text) {
  state_->write(spdlog::level::warn, text);
}
void Log::error(const std::string& text) {
  state_->write(spdlog::level::err, text);
}

void Log::flush(std::chrono::milliseconds at_most) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  const std::uint64_t mine = state_->queued;
  const auto written = [&] { return state_->written->lines() + dropped() >= mine; };
  while (!written() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  if (written())
    for (const auto& sink : state_->logger->sinks()) sink->flush();
}

std::uint64_t Log::dropped() const {
  return state_->pool->overrun_counter();
}
std::uint64_t Log::write_errors() const {
  return *state_->errors;
}

}  // namespace footplate
