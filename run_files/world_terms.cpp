#include "run_files/world_terms.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <string>
#include <utility>

#include "run_files/json_file.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolder = "terms";
constexpr const char* kMembers = "members";
constexpr const char* kHosts = "hosts";

std::string name_of(int start, int number) {
  return std::to_string(start) + "-" + std::to_string(number) + ".json";
}

/// Of "3-12.json", for start 3: 12; else 0.
int number_in(const std::string& name, int start) {
  const std::string prefix = std::to_string(start) + "-";
  int number = 0;
  if (!name.starts_with(prefix) || !name.ends_with(".json")) return 0;
  std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
  return number;
}

/// Made whole before it has its name, which it gets only where there is none yet: else EEXIST. 0: made.
int make_once(const fs::path& path, const Json& json) {
  std::string temporary = path.string() + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return errno;
  const std::string text = json.dump() + "\n";
  const bool written =
      ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && ::fsync(fd) == 0;
  ::close(fd);
  int error = written ? 0 : ENOSPC;
  if (written && ::link(temporary.c_str(), path.c_str()) != 0) error = errno;
  ::unlink(temporary.c_str());
  return error;
}

}  // namespace

std::optional<WorldTerms::Term> WorldTerms::newest() const {
  Term term;
  std::error_code error;
  for (fs::directory_iterator entry(directory_ / kFolder, error), end; !error && entry != end;
       entry.increment(error))
    term.number = std::max(term.number, number_in(entry->path().filename().string(), start_));
  if (error && error != std::errc::no_such_file_or_directory) return std::nullopt;
  if (term.number == 0) return term;
  const auto json = read_json_file(directory_ / kFolder / name_of(start_, term.number));
  if (!json || !json->is_object()) return std::nullopt;
  for (const Json& member : json->value(kMembers, Json::array()))
    if (member.is_number_integer()) term.members.push_back(member.get<int>());
  for (const Json& host : json->value(kHosts, Json::array()))
    if (host.is_string()) term.hosts.push_back(host.get<std::string>());
  return term;
}

bool WorldTerms::includes(int origin) const {
  const auto term = newest();
  if (!term || term->number == 0) return true;  // a disk that is away says nothing against it
  return std::find(term->members.begin(), term->members.end(), origin) != term->members.end();
}

bool WorldTerms::has_host(const std::string& host) const {
  const auto term = newest();
  if (!term || term->number == 0) return true;
  return std::find(term->hosts.begin(), term->hosts.end(), host) != term->hosts.end();
}

Claim WorldTerms::claim(int mine, const std::vector<int>& members,
                        const std::vector<std::string>& hosts) const {
  ::mkdir((directory_ / kFolder).c_str(), 0700);
  for (;;) {
    const auto term = newest();
    if (!term) return Claim::no_disk;
    const auto& before = term->members;
    if (term->number > 0 && std::find(before.begin(), before.end(), mine) == before.end())
      return Claim::left_out;
    const int error = make_once(directory_ / kFolder / name_of(start_, term->number + 1),
                                {{kMembers, members}, {kHosts, hosts}});
    if (error == 0) return Claim::claimed;
    if (error != EEXIST) return Claim::no_disk;  // else somebody was first: a newer term
  }
}

void forget_terms(const fs::path& run_directory) {
  std::error_code ignored;
  fs::remove_all(run_directory / kFolder, ignored);
}

}  // namespace footplate
