#include "console/host/run/journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "protocol/iso_time.h"

namespace footplate::host {
namespace {

constexpr std::size_t kMaxSourceLines = 200;

/// Text of a person or a script inside a comment: on one line, nothing that a terminal would obey.
std::string one_line(const std::string& text) {
  std::string line = text;
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return line;
}

std::string source_comment(const std::string& source) {
  std::string text;
  std::size_t lines = 0;
  for (std::size_t start = 0; start < source.size() && lines < kMaxSourceLines; ++lines) {
    const std::size_t end = std::min(source.find('\n', start), source.size());
    text += "--   " + one_line(source.substr(start, end - start)) + "\n";
    start = end + 1;
  }
  return text;
}

void append(std::string& list, const std::string& item, const char* between = ", ") {
  list += (list.empty() ? "" : between) + item;
}

/// The changes whose names begin with `group`, by the word that follows: { data = { share = { a = 2 } } }.
std::string fields_text(const std::map<std::string, std::string>& values, const std::string& group) {
  std::map<std::string, std::string> fields;
  for (const auto& [name, value] : values) {
    if (!name.starts_with(group)) continue;
    const std::size_t dot = name.find('.', group.size());
    const std::string word = name.substr(group.size(), dot - group.size());
    if (fields.contains(word)) continue;
    fields[word] = dot == std::string::npos ? value : fields_text(values, group + word + ".");
  }
  std::string text;
  for (const auto& [word, value] : fields) append(text, word + " = " + value);
  return "{ " + text + " }";
}

/// { log = { every = 10 }, optim = { lr_scale = 0.5 } }
std::string table_text(const Order& order) {
  std::map<std::string, std::string> values;
  for (const Change& change : order.changes) values[change.name] = to_text(change.value);
  return fields_text(values, "");
}

std::string statements(const Order& order) {
  std::string text;
  if (!order.changes.empty()) text = "set" + table_text(order);
  for (const Call& call : order.calls) append(text, to_text(call), "; ");
  return text;
}

std::string header(const RunIdentity& run) {
  return "-- start " + Json(run.started).dump(-1, ' ', false, Json::error_handler_t::replace) + " of run " +
         one_line(run.name) + "\n";
}

/// Ids of the orders that the file's last part has; nothing if that part isn't of this start.
std::optional<std::set<std::uint64_t>> orders_in(const std::filesystem::path& path,
                                                 const std::string& start) {
  std::set<std::uint64_t> ids;
  std::ifstream file(path);
  bool of_this_start = false;
  std::uint64_t id = 0;
  constexpr std::string_view kOrder = "-- order ";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("-- start ")) {
      of_this_start = line + "\n" == start;
      if (!of_this_start) ids.clear();
    } else if (line.starts_with(kOrder)) {
      id = std::strtoull(line.c_str() + kOrder.size(), nullptr, 10);
    } else if (line.starts_with("at(")) {  // before it an entry isn't whole
      ids.insert(id);
    }
  }
  return of_this_start ? std::optional(std::move(ids)) : std::nullopt;
}

/// Cuts off a last line that a crash interrupted: the file stays a script that runs.
void cut_torn_line(int fd) {
  off_t size = ::lseek(fd, 0, SEEK_END);
  std::array<char, 4096> block;
  for (const off_t whole = size; size > 0;) {
    const off_t from = std::max<off_t>(0, size - static_cast<off_t>(block.size()));
    const ssize_t got = ::pread(fd, block.data(), static_cast<std::size_t>(size - from), from);
    if (got != size - from) return;
    const auto newline = std::string_view(block.data(), static_cast<std::size_t>(got)).rfind('\n');
    if (newline != std::string_view::npos) {
      size = from + static_cast<off_t>(newline) + 1;
      if (size != whole) [[maybe_unused]]
        const int cut = ::ftruncate(fd, size);
      return;
    }
    size = from;
  }
  [[maybe_unused]] const int cut = ::ftruncate(fd, 0);
}

}  // namespace

std::string journal_entry(const OrderReport& report, const std::string& iso_time) {
  const std::optional<Order>& order = report.order;
  const std::optional<Applied>& applied = report.applied;
  if (!order || !applied || applied->id == 0 || (order->changes.empty() && order->calls.empty())) return {};
  std::string text = "-- order " + std::to_string(applied->id) + " · " + one_line(order->user) + " · " +
                     one_line(order->session) + " · " + iso_time;
  for (const Moved& moved : applied->moved) text += " · " + moved.name + " was " + to_text(moved.before);
  text += "\n" + source_comment(order->source) + "at(" + std::to_string(applied->step) + ", ";
  return text + (order->calls.empty() ? table_text(*order) : "function() " + statements(*order) + " end") +
         ")\n";
}

Result<Journal> Journal::open(const std::filesystem::path& path, const RunIdentity& run) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return fail(ErrorKind::failed, "can't open " + path.string() + ": " + std::strerror(errno));
  cut_torn_line(fd);
  auto have = orders_in(path, header(run));
  Journal journal(fd, have.value_or(std::set<std::uint64_t>{}));
  if (!have) journal.pending_ += header(run);
  journal.retry();
  return journal;
}

Journal::Journal(Journal&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), have_(std::move(other.have_)), pending_(std::move(other.pending_)) {}

Journal::~Journal() {
  if (fd_ >= 0) ::close(fd_);
}

bool Journal::append(const OrderReport& report) {
  if (!have_.insert(report.applied ? report.applied->id : 0).second) return pending_.empty();
  pending_ += journal_entry(report, iso_seconds(std::chrono::system_clock::now()));
  return retry();
}

bool Journal::note(const std::string& text) {
  pending_ += "-- " + one_line(text) + " · " + iso_seconds(std::chrono::system_clock::now()) + "\n";
  return retry();
}

bool Journal::retry() {
  if (pending_.empty()) return true;
  while (!pending_.empty()) {
    const ssize_t count = ::write(fd_, pending_.data(), pending_.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    pending_.erase(0, static_cast<std::size_t>(count));
  }
  return ::fdatasync(fd_) == 0;
}

std::string Journal::tail(std::size_t bytes) const {
  const off_t size = ::lseek(fd_, 0, SEEK_END);
  const off_t start = std::max<off_t>(0, size - static_cast<off_t>(bytes));
  std::string text(static_cast<std::size_t>(size - start), '\0');
  const ssize_t count = ::pread(fd_, text.data(), text.size(), start);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return start == 0 ? text : text.substr(std::min(text.find('\n'), text.size() - 1) + 1);
}

}  // namespace footplate::host
