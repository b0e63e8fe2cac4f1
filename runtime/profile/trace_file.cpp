#include "runtime/profile/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <functional>
#include <iterator>
#include <system_error>
#include <utility>

#include "protocol/json.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

/// Profiles that begin with the same step: of several branches, or taken again after a restart.
constexpr std::int64_t kMostOfOneStep = 1000;

// Around the lines of events, which is all that merging has to know.
constexpr std::string_view kOpening = "[\n", kBetween = ",\n", kClosing = "\n]\n";

tl::unexpected<Error> disk_error(const fs::path& path, const char* what) {
  return fail(ErrorKind::failed,
              fmt::format("can't {} {}: {}", what, path.string(), std::generic_category().message(errno)));
}

/// A line that names a process or a row, or says where it stands among the others.
std::string metadata(const char* kind, int rank, std::size_t row, const Json& arguments) {
  return Json{{"ph", "M"}, {"name", kind}, {"pid", rank}, {"tid", row}, {"args", arguments}}.dump();
}

/// In microseconds, as the format wants it.
std::string microseconds(std::int64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

std::vector<std::string> rows_of(std::span<const TraceEvent> events) {
  std::vector<std::string> rows;
  for (const TraceEvent& event : events)
    if (std::ranges::find(rows, event.row) == rows.end()) rows.push_back(event.row);
  return rows;
}

std::string heading(const TraceOwner& owner, const std::vector<std::string>& rows) {
  std::string lines = metadata("process_name", owner.rank, 0,
                               {{"name", fmt::format("rank {} ({})", owner.rank, owner.host)}});
  lines += kBetween;
  lines += metadata("process_sort_index", owner.rank, 0, {{"sort_index", owner.rank}});
  for (std::size_t row = 0; row < rows.size(); ++row) {
    lines += kBetween;
    lines += metadata("thread_name", owner.rank, row, {{"name", rows[row]}});
    lines += kBetween;
    lines += metadata("thread_sort_index", owner.rank, row, {{"sort_index", row}});
  }
  return lines;
}

/// Writes `body` to `path` by way of a temporary file.
Result<void> write_whole(const fs::path& path, const std::function<void(std::ostream&)>& body) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const fs::path temporary = path.string() + ".new";
  errno = 0;
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  body(out);
  out.close();
  if (!out) {
    auto failed = disk_error(temporary, "write");
    fs::remove(temporary, error);
    return failed;
  }
  fs::rename(temporary, path, error);
  if (error)
    return fail(ErrorKind::failed, fmt::format("can't write {}: {}", path.string(), error.message()));
  return {};
}

/// The lines of a trace, without what is around them.
std::string lines_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (text.size() < kOpening.size() + kClosing.size()) return {};
  text.erase(text.size() - kClosing.size());
  return text.substr(kOpening.size());
}

}  // namespace

fs::path rank_trace(const fs::path& folder, int rank) {
  return folder / fmt::format("rank-{}.json", rank);
}

Result<void> write_trace(const fs::path& path, const TraceOwner& owner, std::span<const TraceEvent> events,
                         std::int64_t origin_ns) {
  const std::vector<std::string> rows = rows_of(events);
  return write_whole(path, [&](std::ostream& out) {
    out << kOpening << heading(owner, rows);
    for (const TraceEvent& event : events) {
      const auto row = std::ranges::find(rows, event.row) - rows.begin();
      out << kBetween
          << fmt::format(R"({{"ph":"X","name":{},"pid":{},"tid":{},"ts":{},"dur":{}}})",
                         Json(event.name).dump(-1, ' ', false, Json::error_handler_t::replace), owner.rank,
                         row, microseconds(event.start_ns - origin_ns), microseconds(event.duration_ns));
    }
    out << kClosing;
  });
}

Result<std::vector<int>> merge_traces(const fs::path& folder, int ranks) {
  std::vector<int> missing;
  auto written = write_whole(folder / kMergedTrace, [&](std::ostream& out) {
    out << kOpening;
    bool first = true;
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string lines = lines_of(rank_trace(folder, rank));
      if (lines.empty()) {
        missing.push_back(rank);
        continue;
      }
      if (!std::exchange(first, false)) out << kBetween;
      out << lines;
    }
    out << kClosing;
  });
  if (!written) return tl::unexpected(written.error());
  std::error_code error;
  for (int rank = 0; rank < ranks; ++rank) fs::remove(rank_trace(folder, rank), error);
  return missing;
}

void remove_traces(const fs::path& folder, int first, int end) {
  std::error_code error;
  for (int rank = first; rank < end; ++rank) fs::remove(rank_trace(folder, rank), error);
  fs::remove(folder, error);
}

fs::path profile_folder(const fs::path& folder, std::int64_t step, std::int64_t number) {
  return folder / (number > 1 ? fmt::format("step-{:08}-{}", step, number) : fmt::format("step-{:08}", step));
}

std::int64_t free_profile_number(const fs::path& folder, std::int64_t step) {
  std::error_code error;
  for (std::int64_t number = 1; number <= kMostOfOneStep; ++number)
    if (!fs::exists(profile_folder(folder, step, number), error)) return number;
  return 0;
}

}  // namespace footplate
