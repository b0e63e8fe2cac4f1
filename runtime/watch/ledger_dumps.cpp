#include "runtime/watch/ledger_dumps.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/json.h"
#include "protocol/mutex.h"
#include "run_files/json_file.h"
#include "runtime/base/condition.h"
#include "runtime/base/thread.h"
#include "runtime/base/times.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

/// More than a local disk takes; rank 0 waits longer for the answers.
constexpr std::chrono::milliseconds kWritten{500};
constexpr std::chrono::minutes kBetween{1};

using Wall = std::chrono::system_clock;

/// Unix time of a moment of the ledger's clock.
Json unix_time(LedgerEntry::Clock::time_point moment, LedgerEntry::Clock::time_point now,
               Wall::time_point wall) {
  if (moment == LedgerEntry::Clock::time_point{}) return nullptr;
  return in_seconds(wall.time_since_epoch()) - in_seconds(now - moment);
}

Json line_of(const LedgerEntry& entry, LedgerEntry::Clock::time_point now, Wall::time_point wall) {
  Json line{{"sequence", entry.sequence},
            {"state", entry.is_finished()  ? "finished"
                      : entry.is_started() ? "running"
                                           : "waiting"},
            {"kind", to_string(entry.kind)},
            {"name", entry.name},
            {"step", entry.step},
            {"phase", to_string(entry.phase)},
            {"type", to_string(entry.type)},
            {"elements", entry.elements},
            {"enqueued", unix_time(entry.enqueued, now, wall)},
            {"started", unix_time(entry.started, now, wall)},
            {"finished", unix_time(entry.finished, now, wall)},
            {"seconds", nullptr},
            {"generation", entry.generation},
            {"digest", fmt::format("{:016x}", entry.digest)}};
  if (entry.is_started())
    line["seconds"] = in_seconds((entry.is_finished() ? entry.finished : now) - entry.started);
  return line;
}

/// The number in "rank-2-17.jsonl" of that rank; 0: another file.
int file_number(const fs::path& file, int rank) {
  const std::string name = file.filename().string();
  const std::string start = fmt::format("rank-{}-", rank);
  int number = 0;
  if (!name.starts_with(start) || file.extension() != ".jsonl") return 0;
  std::from_chars(name.data() + start.size(), name.data() + name.size(), number);
  return number;
}

std::vector<int> numbers_in(const fs::path& folder, int rank) {
  std::vector<int> numbers;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (const int number = file_number(entry->path(), rank); number > 0) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

/// The path of the new file; older ones go.
Result<std::string> write_ledger(const fs::path& folder, int rank, const std::string& text) {
  ::mkdir(folder.c_str(), 0700);  // there already, or writing says why it isn't
  std::vector<int> numbers = numbers_in(folder, rank);
  const auto path_of = [&](int number) { return folder / fmt::format("rank-{}-{}.jsonl", rank, number); };
  numbers.push_back(numbers.empty() ? 1 : numbers.back() + 1);
  const fs::path path = path_of(numbers.back());
  if (auto written = write_text_file(path, text); !written) return tl::unexpected(written.error());
  std::error_code ignored;
  for (std::size_t i = 0; i + LedgerDumps::kMostFiles < numbers.size(); ++i)
    fs::remove(path_of(numbers[i]), ignored);
  return path.string();
}

}  // namespace

struct LedgerDumps::Writing {
  std::int64_t operations = 0;
  Mutex mutex;
  Condition changed;
  std::optional<Result<std::string>> path GUARDED_BY(mutex);

  bool wait() {
    MutexLock lock(mutex);
    return changed.wait_for(lock, kWritten, [this]() REQUIRES(mutex) { return path.has_value(); });
  }
};

LedgerDumps::LedgerDumps(const Ledger& ledger, const fs::path& run_directory, std::string host)
    : ledger_(ledger), folder_(run_directory / "ledgers"), host_(std::move(host)) {}

LedgerDumps::~LedgerDumps() {
  if (writing_) writing_->wait();
}

/// What the file says is as of now, however long it takes to write it. Null: one is still being written.
std::shared_ptr<LedgerDumps::Writing> LedgerDumps::begin(int rank, const std::string& why) {
  if (writing_) {
    const MutexLock lock(writing_->mutex);
    if (!writing_->path) return nullptr;
  }
  const auto now = LedgerEntry::Clock::now();
  const auto wall = Wall::now();
  const std::uint64_t newest = ledger_.newest();
  auto writing = std::make_shared<Writing>();
  std::string text = to_line({{"rank", rank},
                              {"host", host_},
                              {"pid", ::getpid()},
                              {"time", in_seconds(wall.time_since_epoch())},
                              {"why", why},
                              {"newest", newest}});
  for (std::uint64_t sequence = newest < Ledger::kSize ? 1 : newest - Ledger::kSize + 1; sequence <= newest;
       ++sequence)
    if (const auto entry = ledger_.find(sequence)) {
      text += to_line(line_of(*entry, now, wall));
      ++writing->operations;
    }
  Thread("ledger file", [writing, rank, folder = folder_, text = std::move(text)] {
    auto path = write_ledger(folder, rank, text);
    const MutexLock lock(writing->mutex);
    writing->path = std::move(path);
    writing->changed.notify_all();
  }).detach();  // it may hang with its disk
  return writing_ = writing;
}

DumpedLedger LedgerDumps::dump(int rank, const std::string& why) {
  DumpedLedger dumped;
  dumped.rank = rank;
  const auto writing = begin(rank, why);
  if (!writing || !writing->wait()) {
    dumped.error = fmt::format("a file in {} is still being written", folder_.string());
    return dumped;
  }
  const MutexLock lock(writing->mutex);
  dumped.operations = writing->operations;
  if (*writing->path)
    dumped.path = **writing->path;
  else
    dumped.error = writing->path->error().message;
  return dumped;
}

void LedgerDumps::dump_after_timeout(int rank, Clock::time_point now) {
  if (now < next_) return;
  next_ = now + kBetween;
  begin(rank, "a collective is past its deadline");
}

}  // namespace footplate
