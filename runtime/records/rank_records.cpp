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

Result<void> write_result(const std::filesystem::path& directory, const Json& result) {
  return write_json_file(directory / kResultFile, result, Durable::yes);
}

void write_result_if_missing(const std::filesystem::path& directory, const Json& result) {
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
  const auto update = update_json_file(
      directory_ / kRunFile,
      {{"state", "running"}, {"ranks", ranks}, {"world_size", ranks.size()}, {"step", start.step}});
  if (!update) warn(update.error().message);
  auto starts = AppendFile::open(directory_ / kStartsFile);
  if (!starts) return warn(starts.error().message);
  if (const auto error = starts->append(to_line(to_json(start))))
    warn("can't write starts.jsonl: " + error.message());
}

void RankRecords::observe(const std::string& topic, const Json& data) {
  if (topic == "applied") {  // every rank, of itself
    log_->info("order " + data.value("order", Json()).dump() + " applied at step " +
               data.value("step", Json()).dump() + ", digest " + data.value("digest", ""));
    follow(data.value("moved", Json::array()));
    return;
  }
  if (!writer_ || topic == "metrics") return;  // metrics come as write()
  if (topic == "order" && data.value("state", "") == "applied")
    last_order_ = data.value("id", std::uint64_t{0});
  if (topic == "run" && data.contains("state")) writer_->run({{"state", data["state"]}});
  if (topic == "console") writer_->run({{"console_pid", data.value("pid", 0)}});
  writer_->event(topic, data);
  print(topic, data);
}

/// Settings that concern the records themselves.
void RankRecords::follow(const Json& moved) {
  for (const auto& item : moved) {
    const std::string name = item.value("name", "");
    const Json after = item.value("after", Json());
    if (name == "log.level" && after.is_string()) log_->set_level(after.get<std::string>());
    if (name == "train.steps" && after.is_number_integer()) steps_ = after.get<std::int64_t>();
    if (name == "log.flush_every" && after.is_number_integer()) flush_every_ = after.get<std::int64_t>();
    if (name == "log.flush_every" && after.is_number_integer() && writer_)
      writer_->set_flush_every(after.get<int>());
  }
}

void RankRecords::print(const std::string& topic, const Json& data) {
  auto line = batch_line(std::chrono::system_clock::now(), topic, data, steps_);
  if (line) printer_->print(*std::move(line));
}

void RankRecords::write(const Json& metrics) {
  if (!writer_) return;
  // Another choice of samples has another loss: what result.json tells is of a whole evaluation.
  if (const auto loss = metrics.find("eval/loss");
      loss != metrics.end() && !metrics.contains("eval/partial")) {
    MutexLock lock(mutex_);
    last_evaluation_ = {{"eval/loss", *loss}};
  }
  print("metrics", metrics);
  writer_->metrics(metrics);
}

Json RankRecords::last_evaluation() const {
  MutexLock lock(mutex_);
  return last_evaluation_;
}

void RankRecords::resumed(const Json& last_evaluation) {
  MutexLock lock(mutex_);
  last_evaluation_ = last_evaluation;
}

void RankRecords::flush() {
  if (writer_) writer_->flush(kSettle);
  log_->flush(kSettle);
}

void RankRecords::info(const std::string& text) {
  log_->info(text);
}

void RankRecords::warn(const std::string& text) {
  log_->warn(text);
  if (printer_) print("warn", {{"text", text}});
}

void RankRecords::ended(const Json& result) {
  if (!writer_) return;
  writer_->event("end", result);
  // Not "ended": the supervisor says so, once it knows that nobody starts the ranks again.
  writer_->run({{"state", "ending"}, {"step", result.value("step", Json(0))}});
  writer_->flush();
  print("end", result);
  const auto lost = writer_->lost();
  if (lost.queue_full + lost.disk_refused > 0)
    log_->warn(std::to_string(lost.queue_full + lost.disk_refused) +
               " lines of metrics and events were lost");
  if (const auto written = write_result(directory_, result); !written) log_->error(written.error().message);
}

}  // namespace footplate
