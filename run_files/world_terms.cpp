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
constexpr const char* kLostHosts = "lost_hosts";

std::vector<std::string> texts_of(const Json& term, const char* name) {
  std::vector<std::string> texts;
  for (const Json& text : term.value(name, Json::array()))
    if (text.is_string()) texts.push_back(text.get<std::string>());
  return texts;
}

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
  return term.number == 0 ? term : read(term.number);
}

std::optional<WorldTerms::Term> WorldTerms::read(int number) const {
  Term term{.number = number, .world = {}};
  const auto json = read_json_file(directory_ / kFolder / name_of(start_, number));
  if (!json || !json->is_object()) return std::nullopt;
  for (const Json& member : json->value(kMembers, Json::array()))
    if (member.is_number_integer()) term.world.origins.push_back(member.get<int>());
  term.world.hosts = texts_of(*json, kHosts);
  term.world.lost_hosts = texts_of(*json, kLostHosts);
  return term;
}

bool WorldTerms::includes(int origin) const {
  const auto term = newest();
  if (!term || term->number == 0) return true;  // a disk that is away says nothing against it
  const auto& members = term->world.origins;
  return std::find(members.begin(), members.end(), origin) != members.end();
}

bool WorldTerms::has_host(const std::string& host) const {
  const auto term = newest();
  if (!term || term->number == 0) return true;
  return std::find(term->world.hosts.begin(), term->world.hosts.end(), host) != term->world.hosts.end();
}

Claim WorldTerms::claim(int mine, const WorldMembers& world) const {
  ::mkdir((directory_ / kFolder).c_str(), 0700);
  for (;;) {
    const auto term = newest();
    if (!term) return Claim::no_disk;
    const auto& before = term->world.origins;
    if (term->number > 0 && std::find(before.begin(), before.end(), mine) == before.end())
      return Claim::left_out;
    const int error = make(term->number + 1, world);
    if (error == 0) return Claim::claimed;
    if (error != EEXIST) return Claim::no_disk;  // else somebody was first: a newer term
  }
}

/// Best effort: without the disk the ranks can't write anything either.
void WorldTerms::close(const std::string& host) const {
  ::mkdir((directory_ / kFolder).c_str(), 0700);
  for (auto term = newest(); term; term = newest())
    if (make(term->number + 1, {.origins = {}, .hosts = {host}}) != EEXIST) return;
}

int WorldTerms::make(int number, const WorldMembers& world) const {
  return make_once(directory_ / kFolder / name_of(start_, number),
                   {{kMembers, world.origins}, {kHosts, world.hosts}, {kLostHosts, world.lost_hosts}});
}

void forget_terms(const fs::path& run_directory) {
  std::error_code ignored;
  fs::remove_all(run_directory / kFolder, ignored);
}

}  // namespace footplate
