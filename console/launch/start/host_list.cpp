#include "console/launch/start/host_list.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <numeric>
#include <sstream>

namespace footplate {
namespace {

constexpr int kMostSlots = 4096;
constexpr std::size_t kMostHosts = 4096;
constexpr const char* kNameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";

/// A name that starts with a dash would be an option of ssh.
Result<void> check_name(std::string_view name) {
  if (name.empty()) return fail(ErrorKind::usage, "a host without a name; give them as n1,n2:4");
  if (name.front() == '-')
    return fail(ErrorKind::usage, "'" + std::string(name) + "' is no host's name: it begins with '-'");
  const auto odd = name.find_first_not_of(kNameCharacters);
  if (odd != std::string_view::npos)
    return fail(ErrorKind::usage, "'" + std::string(name) + "' is no host's name: it has '" +
                                      std::string(1, name[odd]) +
                                      "'; names have letters, digits, '.', '-' and '_', and end with :SLOTS "
                                      "where a run starts more than one rank");
  return {};
}

Result<int> parse_slots(std::string_view text, std::string_view name) {
  int slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error == std::errc{} && end == text.data() + text.size() && slots >= 1 && slots <= kMostSlots)
    return slots;
  return fail(ErrorKind::usage, "slots of " + std::string(name) + " can't be '" + std::string(text) +
                                    "': a number from 1 to " + std::to_string(kMostSlots));
}

Result<void> add(std::vector<Host>& hosts, std::string_view name, int slots) {
  if (auto good = check_name(name); !good) return good;
  const auto known =
      std::find_if(hosts.begin(), hosts.end(), [&](const Host& host) { return host.name == name; });
  if (known != hosts.end())
    known->slots = std::min(known->slots + slots, kMostSlots);
  else if (hosts.size() < kMostHosts)
    hosts.push_back({std::string(name), slots});
  else
    return fail(ErrorKind::usage, "more than " + std::to_string(kMostHosts) + " hosts");
  return {};
}

Result<void> add_line(std::vector<Host>& hosts, const std::string& line) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string name;
  if (!(words >> name)) return {};
  int slots = 1;
  for (std::string word; words >> word;) {
    const std::string key = word.substr(0, word.find('='));
    if (key == "max-slots" || key == "max_slots") continue;
    if (key != "slots" || key.size() == word.size())
      return fail(ErrorKind::usage, "'" + word + "' is not known; a line is: n2 slots=4");
    auto parsed = parse_slots(std::string_view(word).substr(key.size() + 1), name);
    if (!parsed) return tl::unexpected(parsed.error());
    slots = *parsed;
  }
  return add(hosts, name, slots);
}

}  // namespace

Result<std::vector<Host>> parse_hosts(std::string_view list) {
  std::vector<Host> hosts;
  for (bool more = true; more;) {
    const auto comma = list.find(',');
    more = comma != std::string_view::npos;
    const std::string_view one = list.substr(0, comma);
    if (more) list.remove_prefix(comma + 1);
    const auto colon = one.find(':');
    Result<int> slots = 1;
    if (colon != std::string_view::npos) slots = parse_slots(one.substr(colon + 1), one.substr(0, colon));
    if (!slots) return tl::unexpected(slots.error());
    if (auto added = add(hosts, one.substr(0, colon), *slots); !added) return tl::unexpected(added.error());
  }
  return hosts;
}

Result<std::vector<Host>> read_hostfile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<Host> hosts;
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (auto added = add_line(hosts, line); !added)
      return fail(ErrorKind::usage,
                  path.string() + ":" + std::to_string(number) + ": " + added.error().message);
  }
  if (number == 0 && !file.eof())
    return fail(ErrorKind::usage, "can't read the hostfile " + path.string() + ": it is missing, or no file");
  if (hosts.empty()) return fail(ErrorKind::usage, "no host in " + path.string() + "; a line is: n2 slots=4");
  return hosts;
}

std::string host_list_text(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts)
    text += (text.empty() ? "" : ",") + host.name + ":" + std::to_string(host.slots);
  return text;
}

int slots_of(const std::vector<Host>& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int sum, const Host& host) { return sum + host.slots; });
}

Result<std::vector<Host>> spread(std::vector<Host> hosts, int ranks) {
  const int count = static_cast<int>(hosts.size());
  const bool none_written =
      std::all_of(hosts.begin(), hosts.end(), [](const Host& host) { return host.slots == 1; });
  if (none_written && ranks > count) {
    for (int i = 0; i < count; ++i)
      hosts[static_cast<std::size_t>(i)].slots = ranks / count + (i < ranks % count ? 1 : 0);
    return hosts;
  }
  if (const int slots = slots_of(hosts); ranks > slots)
    return fail(ErrorKind::usage, std::to_string(ranks) + " ranks don't fit into the " +
                                      std::to_string(slots) + " slots of " + host_list_text(hosts) +
                                      "; give a host more slots, as in --host " + hosts.front().name + ":" +
                                      std::to_string(hosts.front().slots + ranks - slots) +
                                      ", or leave -n out: a run has as many ranks as slots");
  for (Host& host : hosts) {
    host.slots = std::min(host.slots, ranks);
    ranks -= host.slots;
  }
  std::erase_if(hosts, [](const Host& host) { return host.slots == 0; });
  return hosts;
}

}  // namespace footplate
