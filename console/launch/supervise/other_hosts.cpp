#include "console/launch/supervise/other_hosts.h"

#include <chrono>
#include <system_error>
#include <thread>

#include "console/launch/supervise/ending_times.h"
#include "protocol/host_name.h"
#include "run_files/file_names.h"
#include "run_files/lease.h"
#include "run_files/world_terms.h"

namespace footplate {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLooksAgain{200};

/// Whether it comes true in time.
template <class Condition>
bool holds_within(std::chrono::seconds patience, const Condition& condition) {
  for (const auto end = steady_clock::now() + patience; !condition();
       std::this_thread::sleep_for(kLooksAgain))
    if (steady_clock::now() > end) return false;
  return true;
}

}  // namespace

bool is_left_out(const std::filesystem::path& run_directory, int start) {
  return !WorldTerms(run_directory, start).has_host(host_name());
}

bool is_cut_off(const std::filesystem::path& run_directory, int start) {
  const auto term = WorldTerms(run_directory, start).newest();
  return term && !term->world.lost_hosts.empty() && is_left_out(run_directory, start);
}

bool goes_on_elsewhere(const std::filesystem::path& run_directory, int start) {
  const auto has_result = [&run_directory] {
    std::error_code ignored;
    return std::filesystem::exists(run_directory / kResultFile, ignored);
  };
  if (!holds_within(kOthersClaim, [&] { return has_result() || is_left_out(run_directory, start); }))
    return false;
  if (holds_within(kLeaseIsRenewed, has_result)) return false;
  return exact_age_of_lease(run_directory).value_or(kLeaseEnds) < kLeaderIsSilent;
}

}  // namespace footplate
