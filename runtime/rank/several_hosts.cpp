#include "runtime/rank/several_hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "runtime/base/fault.h"
#include "runtime/comm/mpi/clocks_ahead.h"
#include "runtime/comm/mpi/declare_lost.h"
#include "runtime/comm/mpi/exchange_bells.h"

namespace footplate {
namespace {

/// The smaller side of a cut gives the larger one that long to claim the term; both find out within a second.
constexpr std::chrono::seconds kLargerSideClaims{3};

FenceWatch::Parts fence_of(const SeveralHosts::Parts& parts) {
  const Membership& members = parts.session.members();
  const int origin = members.origins[static_cast<std::size_t>(members.rank)];
  return {RunFence(parts.run_directory, parts.folders.run_id(), parts.start, origin), parts.run_directory,
          [&records = parts.records](const std::string& text) {
            records.warn(text);
            records.flush_log();  // the other files are the newer start's
          },
          [&folders = parts.folders] { folders.orphan(); }};
}

}  // namespace

std::unique_ptr<SeveralHosts> SeveralHosts::of(const Parts& parts) {
  return has_several_hosts(parts.session) ? std::make_unique<SeveralHosts>(parts) : nullptr;
}

SeveralHosts::SeveralHosts(const Parts& parts)
    : parts_(parts), fence_(fence_of(parts)), members_(parts.session.members().origins) {
  note_hosts();
  if (parts_.session.rank() == 0) fence_.lead();
}

void SeveralHosts::note_hosts() {
  const std::vector<std::string> hosts = parts_.session.hosts();
  const std::vector<int>& origins = parts_.session.members().origins;
  const MutexLock lock(mutex_);
  for (std::size_t rank = 0; rank < origins.size(); ++rank) host_of_rank_[origins[rank]] = hosts[rank];
}

void SeveralHosts::watch() {
  const auto far = clocks_ahead(parts_.session);
  if (!far) return;  // the start fails
  if (parts_.session.rank() == 0) tell_of_clocks(*far);
  auto bells = exchange_bells(parts_.session);
  if (!bells && !parts_.session.lost())
    parts_.records.warn(
        "this rank can't be rung from other hosts, and doesn't watch them: it has no UDP socket, or none of "
        "comm.ports "
        "is free");
  watch(std::move(bells));
}

/// Nothing of the run depends on them; whoever reads its records does.
void SeveralHosts::tell_of_clocks(const std::map<std::string, double>& far) const {
  if (far.empty()) return;
  const auto& [host, ahead] = *far.begin();
  const std::string others =
      far.size() > 1 ? fmt::format(", and {} other hosts' are apart, too", far.size() - 1) : "";
  parts_.records.warn(fmt::format(
      "the clock of host {} is {:.0f} s {} that of host {}{}: so are the times in their logs; set all by NTP",
      host, std::abs(ahead), ahead > 0 ? "ahead of" : "behind", parts_.session.hosts().front(), others));
}

void SeveralHosts::watch(std::unique_ptr<RemoteBells> bells) {
  if (!bells || parts_.timeout_s <= 0) return;
  const bool tells_mpi = !fault("mpi_untold", parts_.session.rank());
  HostWatch::Actions actions{
      .lost = [this](const std::string& host) { note_lost(host); },
      .tell_mpi = [tells_mpi](const MpiProcess& process) { return tells_mpi && declare_lost(process); },
      .mpi_unaware =
          [this](const std::string& host) {
            parts_.records.flush_log();
            parts_.give_up(
                fmt::format("host {} is lost, and this Open MPI can't be told of it: that takes functions of "
                            "Open MPI 5.0",
                            host));
          }};
  watch_ = std::make_unique<HostWatch>(parts_.session, std::move(bells),
                                       std::chrono::duration<double>(parts_.timeout_s), std::move(actions));
}

void SeveralHosts::note_lost(const std::string& host) {
  declared_lost_ = true;
  {
    const MutexLock lock(mutex_);
    lost_hosts_.insert(host);
  }
  if (parts_.launcher_host == host) launcher_is_lost_ = true;
  parts_.records.warn(
      fmt::format("host {} is declared lost: nothing came from it for {:.3g} s (comm.host_timeout_s)", host,
                  parts_.timeout_s));
}

void SeveralHosts::enter_world(std::unique_ptr<RemoteBells> bells) {
  const Membership& now = parts_.session.members();
  if (watch_ && bells) watch_->take_bells(std::move(bells));
  if (watch_) watch_->follow(now, parts_.session.hosts(), parts_.session.processes());
  note_hosts();
  const std::vector<int> before = std::exchange(members_, now.origins);
  const bool may_be_cut_off = declared_lost_.exchange(false);
  if (now.rank != 0) return;
  take_term(before, may_be_cut_off);
  fence_.lead();
}

/// Where hosts have lost each other, the larger side goes on, or of two halves the one with the rank 0 of
/// before: the other gives it time, and is left out.
void SeveralHosts::take_term(const std::vector<int>& before, bool may_be_cut_off) {
  const bool has_leader = std::find(members_.begin(), members_.end(), before.front()) != members_.end();
  const std::size_t twice = 2 * members_.size();
  if (may_be_cut_off && (twice < before.size() || (twice == before.size() && !has_leader)))
    std::this_thread::sleep_for(kLargerSideClaims);
  WorldMembers world{.origins = members_, .hosts = parts_.session.hosts(), .lost_hosts = {}};
  {
    const MutexLock lock(mutex_);
    world.lost_hosts.assign(lost_hosts_.begin(), lost_hosts_.end());
  }
  fence_.claim(world, may_be_cut_off);
}

std::string SeveralHosts::why_lost(const std::vector<int>& origins) const {
  std::set<std::string> hosts;
  {
    const MutexLock lock(mutex_);
    for (const int origin : origins)
      if (const auto host = host_of_rank_.find(origin);
          host != host_of_rank_.end() && lost_hosts_.contains(host->second))
        hosts.insert(host->second);
  }
  if (hosts.empty()) return "";
  return fmt::format("host{} {}: nothing came for {:.3g} s", hosts.size() == 1 ? "" : "s",
                     fmt::join(hosts, ", "), parts_.timeout_s);
}

void SeveralHosts::end_daemon_if_orphaned() const {
  if (launcher_is_lost_) parts_.folders.orphan();
}

}  // namespace footplate
