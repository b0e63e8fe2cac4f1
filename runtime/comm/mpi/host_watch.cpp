#include "runtime/comm/mpi/host_watch.h"

#include <algorithm>
#include <utility>

namespace footplate {
namespace {

using namespace std::chrono_literals;

constexpr auto kBetweenQuestions = 1s;
/// This process has been stopped, or the machine was suspended: what it didn't hear says nothing.
constexpr auto kWasAway = 5s;
/// Another rank may declare a host lost so much before this one would.
constexpr auto kOthersAreSooner = 2s;

}  // namespace

HostWatch::HostWatch(MpiSession& session, std::unique_ptr<RemoteBells> bells,
                     std::chrono::duration<double> timeout, Actions actions)
    : session_(session),
      bells_(std::move(bells)),
      timeout_(std::chrono::duration_cast<Clock::duration>(timeout)),
      actions_(std::move(actions)),
      own_host_(session.hosts()[static_cast<std::size_t>(session.rank())]) {
  follow(session.members(), session.hosts(), session.processes());
  thread_ = Thread("hosts", [this] { watch(); });
}

HostWatch::~HostWatch() {
  ends_ = true;
  wake_.wake();
  thread_.join();
}

void HostWatch::follow(const Membership& members, const std::vector<std::string>& hosts,
                       const std::vector<MpiProcess>& processes) {
  const auto now = Clock::now();
  std::vector<std::string> lost;
  {
    const MutexLock lock(mutex_);
    std::map<std::string, Host> before = std::exchange(hosts_, {});
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      if (hosts[rank] == own_host_) continue;
      const auto [entry, is_new] = hosts_.try_emplace(hosts[rank], before[hosts[rank]]);
      Host& host = entry->second;
      if (is_new) {
        host.origins.clear();
        host.processes.clear();
      }
      host.origins.push_back(members.origins[rank]);
      if (!processes.empty()) host.processes.push_back(processes[rank]);
    }
    for (const auto& [name, host] : before)
      if (!hosts_.contains(name) && !host.origins.empty() && host.is_known &&
          now - host.heard > timeout_ - std::min<Clock::duration>(kOthersAreSooner, timeout_ / 2))
        lost.push_back(name);
  }
  for (const std::string& name : lost) actions_.lost(name);
}

void HostWatch::take_bells(std::unique_ptr<RemoteBells> bells) {
  {
    const MutexLock lock(mutex_);
    next_bells_ = std::move(bells);
  }
  wake_.wake();
}

void HostWatch::change_bells() {
  const MutexLock lock(mutex_);
  if (next_bells_) bells_ = std::move(next_bells_);
}

void HostWatch::watch() {
  auto next = Clock::now();
  while (!ends_) {
    const auto now = Clock::now();
    change_bells();
    if (now >= next) {
      if (now - next > kWasAway) {
        const MutexLock lock(mutex_);
        for (auto& [name, host] : hosts_) host.heard = now;
      }
      ask(now);
      next = now + kBetweenQuestions;
    }
    wake_.wait(std::max<Clock::duration>(next - Clock::now(), 0s), bells_->fd(), -1);
    take(Clock::now());
  }
}

void HostWatch::ask(Clock::time_point now) {
  std::map<std::string, std::vector<MpiProcess>> silent;
  {
    const MutexLock lock(mutex_);
    for (auto& [name, host] : hosts_) {
      if (host.origins.empty()) continue;
      if (!host.is_known || now - host.heard <= timeout_) {
        bells_->ask(host.origins[host.asked++ % host.origins.size()]);
        continue;
      }
      host.origins.clear();
      silent[name] = std::exchange(host.processes, {});
    }
  }
  for (const auto& [name, processes] : silent) declare(name, processes);
}

void HostWatch::take(Clock::time_point now) {
  const std::set<int> heard = bells_->take();
  if (heard.empty()) return;
  const MutexLock lock(mutex_);
  for (auto& [name, host] : hosts_)
    for (const int origin : host.origins)
      if (heard.contains(origin)) {
        host.heard = now;
        host.is_known = true;
      }
}

void HostWatch::declare(const std::string& name, const std::vector<MpiProcess>& processes) {
  actions_.lost(name);
  // Each has to be told of.
  bool is_told = !processes.empty();
  for (const MpiProcess& process : processes) is_told = actions_.tell_mpi(process) && is_told;
  if (!is_told) actions_.mpi_unaware(name);
  session_.give_up();
}

}  // namespace footplate
