#include "runtime/records/record_writer.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>

#include "protocol/iso_time.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"

namespace footplate {
namespace {

constexpr std::size_t kQueuedRecords = 8192;

std::uint64_t sequence_of(const std::string& line) {
  const auto json = parse_line(line);
  if (!json || !json->is_object()) return 0;
  const auto found = json->find("sequence");
  return found != json->end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : 0;
}

/// One beside training may be of a step that the run has left behind.
bool is_of_evaluation(const Json& line) {
  return line.contains("eval/seconds") || line.contains("eval/evaluation_failed");
}

}  // namespace

Result<std::unique_ptr<RecordWriter>> RecordWriter::open(Options options) {
  auto metrics = AppendFile::open(options.directory / kMetricsFile);
  if (!metrics) return tl::unexpected(metrics.error());
  auto events = AppendFile::open(options.directory / kEventsFile);
  if (!events) return tl::unexpected(events.error());
  return std::unique_ptr<RecordWriter>(
      new RecordWriter(std::move(options), *std::move(metrics), *std::move(events)));
}

RecordWriter::RecordWriter(Options options, AppendFile metrics, AppendFile events)
    : options_(std::move(options)),
      metrics_file_(std::move(metrics)),
      events_file_(std::move(events)),
      next_sequence_(sequence_of(events_file_.last_line()) + 1),
      flush_every_(static_cast<std::size_t>(std::max(1, options_.flush_every))),
      thread_([this] { work(); }) {}

RecordWriter::~RecordWriter() {
  {
    MutexLock lock(mutex_);
    ending_ = true;
  }
  wanted_.notify_all();
  thread_.join();
}

void RecordWriter::metrics(Json line) {
  line["start"] = options_.start;
  MutexLock lock(mutex_);
  if (queued_.metrics.size() == kQueuedRecords) {
    ++lost_.queue_full;
    return;
  }
  queued_.metrics.push_back(std::move(line));
  // The first starts the writer's clock, enough of them end its wait.
  if (queued_.metrics.size() == 1 || queued_.metrics.size() >= flush_every_) wanted_.notify_all();
}

void RecordWriter::event(std::string topic, Json data) {
  Json line = {{"time", iso_time(std::chrono::system_clock::now())},
               {"topic", std::move(topic)},
               {"data", std::move(data)}};
  MutexLock lock(mutex_);
  if (queued_.events.size() == kQueuedRecords) {
    ++lost_.queue_full;
    return;
  }
  queued_.events.push_back(std::move(line));
  wanted_.notify_all();
}

void RecordWriter::run(const Json& fields) {
  MutexLock lock(mutex_);
  queued_.run.update(fields);
  wanted_.notify_all();
}

void RecordWriter::set_flush_every(int lines) {
  MutexLock lock(mutex_);
  flush_every_ = static_cast<std::size_t>(std::max(1, lines));
}

bool RecordWriter::flush(std::chrono::milliseconds at_most) {
  MutexLock lock(mutex_);
  const std::uint64_t mine = ++flushes_wanted_;
  wanted_.notify_all();
  return written_.wait_for(lock, at_most, [&]() REQUIRES(mutex_) { return flushes_done_ >= mine; });
}

RecordWriter::Lost RecordWriter::lost() const {
  MutexLock lock(mutex_);
  return lost_;
}

bool RecordWriter::due() const {
  return ending_ || flushes_wanted_ > flushes_done_ || !queued_.events.empty() || !queued_.run.empty() ||
         queued_.metrics.size() >= flush_every_;
}

void RecordWriter::work() {
  pthread_setname_np(pthread_self(), "records");
  MutexLock lock(mutex_);
  for (;;) {
    wanted_.wait(lock, [this]() REQUIRES(mutex_) { return due() || !queued_.metrics.empty(); });
    wanted_.wait_for(lock, options_.longest_wait, [this]() REQUIRES(mutex_) { return due(); });
    Batch batch = std::exchange(queued_, Batch());
    const std::uint64_t flushes = flushes_wanted_;
    const bool last = ending_;
    lock.unlock();
    if (!batch.empty()) write(std::move(batch));
    lock.lock();
    flushes_done_ = flushes;
    written_.notify_all();
    if (last && queued_.metrics.empty() && queued_.events.empty()) return;
  }
}

void RecordWriter::write(Batch batch) {
  Json step;
  for (auto& event : batch.events) event["sequence"] = next_sequence_++;
  append(events_file_, batch.events);
  append(metrics_file_, batch.metrics);
  for (const Json& line : batch.metrics)
    if (line.contains("step") && !is_of_evaluation(line)) step = line["step"];
  if (!step.is_null() && !batch.run.contains("step")) batch.run["step"] = step;
  if (batch.run.empty()) return;
  const auto path = options_.directory / kRunFile;
  if (const auto updated = update_json_file(path, batch.run); updated)
    note_success(path);
  else
    note_failure(path, updated.error().message);
}

void RecordWriter::append(AppendFile& file, const std::vector<Json>& lines) {
  if (lines.empty()) return;
  std::string text;
  for (const auto& line : lines) text += to_line(line);
  const auto error = file.append(text);
  if (!error) return note_success(file.path());
  {
    MutexLock lock(mutex_);
    lost_.disk_refused += lines.size();
  }
  note_failure(file.path(), "can't write " + file.path().string() + ": " + error.message());
}

/// Said for the first file and not for each: a full disk refuses them all.
void RecordWriter::note_failure(const std::filesystem::path& file, const std::string& what) {
  const bool first = failing_.empty();
  failing_.insert(file);
  if (first && options_.tell)
    options_.tell(what + "; training goes on, what can't be written is lost and counted");
}

void RecordWriter::note_success(const std::filesystem::path& file) {
  if (failing_.erase(file) > 0 && failing_.empty() && options_.tell)
    options_.tell("the run's files can be written again; " + std::to_string(lost().disk_refused) +
                  " lines were lost");
}

}  // namespace footplate
