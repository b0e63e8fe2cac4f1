#include "runtime/records/rank_records.h"

#include <sys/stat.h>
#include <unistd.h>

#include "run_files/file_names.h"
#include "run_files/json_file.h"
#include "runtime/records/batch_line.h"

namespace footplate {
namespace {

/// A disk that is slow has written by then, one that hangs hasn't.
constexpr std::chrono::milliseconds kSettle{1000};

}  // namespace

Result<void> write_result(const std::filesystem::path& directory, const RunResult& result) {
  return write_json_file(directory / kResultFile, to_json(result), Durable::yes);
}

void write_result_if_missing(const std::filesystem::path& directory, const RunResult& result) {
  std::error_code ignored;
  if (std::filesystem::exists(directory / kResultFile, ignored)) return;
  [[maybe_unused]] const auto written = write_result(directory, result);
}

RankRecords::RankRecords(std::filesystem::path directory, int start, const Settings& settings)
    : directory_(std::move(directory)),
      start_(start),
      flush_every_(settings.integer("log.flush_every")),
      steps_(settings.integer("train.steps")) {}

Result<std::unique_ptr<RankRecords>> RankRecords::open(const std::filesystem::path& directory, int rank,
                                                       int start, const Settings& settings) {
  ::mkdir((directory / "log").c_str(), 0700);  // there already, or opening the log says why it isn't
  std::unique_ptr<RankRecords> records(new RankRecords(directory, start, settings));
  // Before any file is opened: where stdout is closed, the next one would take its number.
  if (rank == 0) records->printer_ = std::make_unique<LinePrinter>(STDOUT_FILENO);
  auto log =
      Log::open(directory / "log" / ("rank-" + std::to_string(rank) + ".log"), settings.string("log.level"));
  if (!log) return tl::unexpected(log.error());
  records->log_ = *std::move(log);
  if (rank == 0)
    if (auto opened = records->open_writer(); !opened) return tl::unexpected(opened.error());
  return records;
}

Result<void> RankRecords::open_writer() {
  RecordWriter::Options options;
  options.directory = directory_;
  options.start = start_;
  options.flush_every = static_cast<int>(flush_every_);
  options.tell = [this](const std::string& text) { warn(text); };
  auto writer = RecordWriter::open(std::move(options));
  if (!writer) return tl::unexpected(writer.error());
  writer_ = *std::move(writer);
  return {};
}

Result<void> RankRecords::take_over() {
  printer_ = std::make_unique<LinePrinter>(STDOUT_FILENO);
  return open_writer();
}

void RankRecords::world(const Json& ranks, const std::string& host) {
  if (writer_) writer_->run({{"ranks", ranks}, {"world_size", ranks.size()}, {"host", host}});
}

void RankRecords::started(const StartRecord& start, const Json& ranks) {
  if (!writer_) return;
  const auto update = update_json_file(directory_ / kRunFile, {{"state", to_string(RunState::running)},
                                                               {"ranks", ranks},
                                                               {"world_size", ranks.size()},
                                                               {"step", start.step}});
  if (!update) warn(update.error().message);
  auto starts = AppendFile::open(directory_ / kStartsFile);
  if (!starts) return warn(starts.error().message);
  if (const auto error = starts->append(to_line(to_json(start))))
    warn("can't write starts.jsonl: " + error.message());
}

void RankRecords::applied(const OrderApplied& applied) {
  log_->info("order " + std::to_string(applied.order) + " applied at step " + std::to_string(applied.step) +
             ", digest " + applied.digest);
  for (const Moved& moved : applied.moved) follow(moved);
}

void RankRecords::console_started(pid_t pid) {
  if (!writer_) return;
  writer_->run({{"console_pid", pid}});
  writer_->event("console", {{"pid", pid}});
}

void RankRecords::observe(const EventData& event) {
  if (!writer_ || topic_of(event) == Topic::metrics) return;  // metrics come as write()
  if (const auto* order = std::get_if<OrderReport>(&event); order && order->state == OrderState::applied)
    last_order_ = order->id;
  if (const auto* change = std::get_if<RunChange>(&event))
    writer_->run({{"state", to_string(change->state)}});
  writer_->event(std::string(to_string(topic_of(event))), to_json(event));
  print(event);
}

/// Settings that concern the records themselves.
void RankRecords::follow(const Moved& moved) {
  if (moved.name == "log.level")
    if (const auto* level = std::get_if<std::string>(&moved.after)) log_->set_level(*level);
  const auto* number = std::get_if<std::int64_t>(&moved.after);
  if (number == nullptr) return;
  if (moved.name == "train.steps") steps_ = *number;
  if (moved.name != "log.flush_every") return;
  flush_every_ = *number;
  if (writer_) writer_->set_flush_every(static_cast<int>(*number));
}

void RankRecords::print(const EventData& event) {
  auto line = batch_line(std::chrono::system_clock::now(), event, steps_);
  if (line) printer_->print(*std::move(line));
}

/// Another choice of samples has another loss: what result.json and checkpoints tell is of whole evaluations.
void RankRecords::keep(const Json& metrics) {
  if (metrics.contains("eval/partial")) return;
  MutexLock lock(mutex_);
  if (const auto loss = metrics.find("eval/loss"); loss != metrics.end())
    last_evaluation_.values = {{"eval/loss", *loss}, {"eval/step", metrics.at("step")}};
  if (const auto loss = metrics.find("eval/full_loss"); loss != metrics.end())
    full_loss_ = number_from_json(*loss);
}

void RankRecords::write(const Json& metrics) {
  if (!writer_) return;
  keep(metrics);
  print(LoggedMetrics{metrics});
  writer_->metrics(metrics);
}

LoggedMetrics RankRecords::last_evaluation() const {
  MutexLock lock(mutex_);
  return last_evaluation_;
}

std::optional<double> RankRecords::full_loss() const {
  MutexLock lock(mutex_);
  return full_loss_;
}

void RankRecords::best(const std::optional<BestEvaluation>& best) {
  if (writer_) writer_->run({{"best_evaluation", best ? to_json(*best) : Json()}});
}

void RankRecords::resumed(LoggedMetrics last_evaluation) {
  MutexLock lock(mutex_);
  last_evaluation_ = std::move(last_evaluation);
}

void RankRecords::flush() {
  if (writer_) writer_->flush(kSettle);
  flush_log();
}

void RankRecords::flush_log() {
  log_->flush(kSettle);
}

void RankRecords::info(const std::string& text) {
  log_->info(text);
}

void RankRecords::warn(const std::string& text) {
  log_->warn(text);
  Warning warning;
  warning.text = text;
  if (printer_) print(warning);
}

void RankRecords::log_warning(const std::string& text) {
  log_->warn(text);
}

void RankRecords::ended(const RunResult& result) {
  if (!writer_) return;
  writer_->event(std::string(to_string(Topic::end)), to_json(result));
  // Not "ended": the supervisor says so, once it knows that nobody starts the ranks again.
  writer_->run({{"state", to_string(RunState::ending)}, {"step", result.step}});
  writer_->flush();
  print(result);
  const auto lost = writer_->lost();
  if (lost.queue_full + lost.disk_refused > 0)
    log_->warn(std::to_string(lost.queue_full + lost.disk_refused) +
               " lines of metrics and events were lost");
  if (const auto written = write_result(directory_, result); !written) log_->error(written.error().message);
}

}  // namespace footplate
