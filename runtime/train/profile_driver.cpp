#include "runtime/train/profile_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <limits>
#include <utility>

#include "protocol/host_name.h"
#include "runtime/comm/agree.h"
#include "runtime/comm/ledger.h"
#include "runtime/profile/trace_file.h"

namespace footplate {
namespace {

/// Since 1970. The clocks of this host differ by less than a microsecond in the time that this takes.
std::int64_t wall_ns(SteadyClock::time_point at) {
  using std::chrono::nanoseconds;
  const auto ago = SteadyClock::now() - at;
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<nanoseconds>(wall).count() -
         std::chrono::duration_cast<nanoseconds>(ago).count();
}

TraceEvent event(const char* row, std::string name, SteadyClock::time_point start,
                 SteadyClock::time_point end) {
  return {row, std::move(name), wall_ns(start),
          std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count()};
}

std::string name_of(const LedgerEntry& entry) {
  return fmt::format("{}: {} of {} {}", entry.name, to_string(entry.kind), entry.elements,
                     to_string(entry.type));
}

}  // namespace

Result<MeasurementBegun> ProfileDriver::begin(std::int64_t steps) {
  const std::int64_t step = training_.position.step;
  if (now_)
    return fail(ErrorKind::refused, fmt::format("the profile of steps {} to {} is under way", now_->first,
                                                now_->first + now_->steps - 1));
  if (training_.options.folder.empty()) return fail(ErrorKind::refused, "this run has no folder for traces");
  now_ = UnderWay{.first = step, .steps = steps};
  return MeasurementBegun{step, steps, step + steps - 1};
}

void ProfileDriver::before_step() {
  if (!now_ || now_->has_begun) return;
  now_->has_begun = true;
  if (training_.options.ledger != nullptr) now_->looked_up = training_.options.ledger->newest();
  training_.timer.record(&now_->phases);
  if (auto begun = trace_.begin(); !begun) now_->failure = begun.error().message;
}

void ProfileDriver::after_step() {
  if (!now_) return;
  const bool is_last = training_.position.step >= now_->first + now_->steps;
  if (trace_.is_recording()) {
    ++now_->recorded;
    look_up_collectives();
    if (is_last || trace_.is_full()) take();
  }
  if (is_last) finish();
}

/// What has been recorded so far is all that this rank's trace has.
void ProfileDriver::take() {
  const std::vector<TraceEvent> operations = trace_.end();
  training_.timer.record(nullptr);
  add_phases();
  std::ranges::move(now_->collectives, std::back_inserter(now_->events));
  std::ranges::copy(operations, std::back_inserter(now_->events));
}

void ProfileDriver::add_phases() {
  std::vector<PhaseStay> whole;  // a phase that is entered twice in a row is one
  for (const PhaseStay& stay : now_->phases) {
    if (!whole.empty() && whole.back().phase == stay.phase)
      whole.back().until = stay.until;
    else
      whole.push_back(stay);
  }
  for (const PhaseStay& stay : whole)
    now_->events.push_back(event("phases", std::string(to_string(stay.phase)), stay.since, stay.until));
}

/// After each step, as the ledger keeps the last Ledger::kSize only. They end in the order of their launches:
/// from the first that is under way on they are the next step's.
void ProfileDriver::look_up_collectives() {
  const Ledger* ledger = training_.options.ledger;
  if (ledger == nullptr) return;
  for (; now_->looked_up < ledger->newest(); ++now_->looked_up) {
    const auto entry = ledger->find(now_->looked_up + 1);
    if (entry && !entry->is_finished()) return;
    if (entry)
      now_->collectives.push_back(event("collectives", name_of(*entry), entry->started, entry->finished));
    else
      ++now_->lost_collectives;
  }
}

void ProfileDriver::finish() {
  const auto written = write();
  if (!written)
    return give_up(training_.is_lost(written.error()) ? "a rank was lost" : written.error().message);
  now_.reset();
  reporter_.publish(*written);
}

std::filesystem::path ProfileDriver::parent() const {
  return std::filesystem::path(training_.options.folder) / "profiles";
}

/// Collective. On rank 0 what all have, on the others something that nobody hears of.
Result<StepProfile> ProfileDriver::write() {
  const auto extent = agree_on_extent();
  if (!extent) return tl::unexpected(extent.error());
  StepProfile profile{.first = now_->first,
                      .steps = now_->steps,
                      .recorded = extent->recorded,
                      .lost_collectives = extent->lost_collectives};
  if (extent->number == 0)
    return fail(ErrorKind::failed, fmt::format("{} has too many profiles of step {}: remove some",
                                               parent().string(), now_->first));
  const auto folder = profile_folder(parent(), now_->first, extent->number);
  const int rank = training_.rank(), ranks = training_.world_size();
  const Result<void> mine = write_part(folder, extent->origin_ns);
  if (auto all = agree(training_.options.communicator, mine); !all) {
    remove_traces(folder, rank, rank == 0 ? ranks : rank + 1);  // rank 0 also that of a rank that was lost
    return tl::unexpected(all.error());
  }
  if (rank != 0) return profile;
  auto missing = merge_traces(folder, ranks);
  if (!missing) {
    remove_traces(folder, 0, ranks);
    return tl::unexpected(missing.error());
  }
  profile.missing = *std::move(missing);
  profile.path = (folder / kMergedTrace).string();
  return profile;
}

Result<void> ProfileDriver::write_part(const std::filesystem::path& folder, std::int64_t origin_ns) const {
  if (!now_->failure.empty()) return fail(ErrorKind::failed, now_->failure);
  return write_trace(rank_trace(folder, training_.rank()), {training_.rank(), host_name()}, now_->events,
                     origin_ns);
}

/// The earliest time that any rank's trace has, the fewest steps, the most collectives that one lacks, and
/// the number of the folder that rank 0 has found free.
Result<ProfileDriver::Extent> ProfileDriver::agree_on_extent() const {
  constexpr auto kNone = std::numeric_limits<std::int64_t>::max();
  std::array<std::int64_t, 4> least{
      kNone, now_->recorded, -now_->lost_collectives,
      training_.rank() == 0 ? free_profile_number(parent(), now_->first) : kNone};
  for (const TraceEvent& event : now_->events) least[0] = std::min(least[0], event.start_ns);
  const Buffer buffer{least.data(), static_cast<std::int64_t>(least.size()), DataType::int64};
  auto reduced = training_.options.communicator.all_reduce(buffer, ReduceOp::min, "profile")->wait();
  if (!reduced) return tl::unexpected(reduced.error());
  return Extent{least[0], least[1], -least[2], least[3]};
}

void ProfileDriver::give_up(const std::string& why) {
  if (trace_.is_recording()) trace_.end();
  training_.timer.record(nullptr);
  if (const auto given_up = std::exchange(now_, std::nullopt))
    reporter_.publish(StepProfile{.first = given_up->first, .steps = given_up->steps, .reason = why});
}

}  // namespace footplate
