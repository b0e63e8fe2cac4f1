#include "console/launch/supervise/alarms.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>
#include <variant>

#include "protocol/json.h"
#include "protocol/messages/collective_verdict.h"
#include "protocol/overloaded.h"
#include "run_files/file_names.h"

namespace footplate {
namespace {

/// Whether a warning of each kind needs a person: nothing mends it by itself, or training isn't what it
/// should be. A pause and the end are told anyway.
constexpr std::array kNeedsPerson{
    std::pair{WarningKind::other, false},      std::pair{WarningKind::collective, true},
    std::pair{WarningKind::timeout, false},  // the ranks go on
    std::pair{WarningKind::recovery, true},    std::pair{WarningKind::advice, false},
    std::pair{WarningKind::memory, false},     std::pair{WarningKind::late, false},
    std::pair{WarningKind::disagree, true},    std::pair{WarningKind::state_hash, true},
    std::pair{WarningKind::sync, false},       std::pair{WarningKind::lost_events, false},
    std::pair{WarningKind::replacement, true}, std::pair{WarningKind::console, false},
    std::pair{WarningKind::control, false},    std::pair{WarningKind::evaluation, false},
    std::pair{WarningKind::nonfinite, true},   std::pair{WarningKind::corpus, true},
    std::pair{WarningKind::cuda_graph, false}, std::pair{WarningKind::load, false},
    std::pair{WarningKind::nccl, false},       std::pair{WarningKind::script, true},
    std::pair{WarningKind::checkpoint, true},
};
static_assert(kNeedsPerson.size() == EnumWords<WarningKind>::kAll.size(), "each kind is in the table");

/// A collective that is late, and whose ranks are all in it, may well end; one that has ended needs nobody.
bool needs_person(const Warning& warning) {
  const auto verdict = from_word<CollectiveVerdict>(warning.verdict);
  if (verdict == CollectiveVerdict::slow || verdict == CollectiveVerdict::over) return false;
  const auto found = std::ranges::find(kNeedsPerson, warning.kind, &std::pair<WarningKind, bool>::first);
  return found != kNeedsPerson.end() && found->second;
}

std::filesystem::path events_of(const std::filesystem::path& run_directory) {
  return run_directory / kEventsFile;
}

std::uintmax_t size_now(const std::filesystem::path& path) {
  std::error_code none;
  const auto size = std::filesystem::file_size(path, none);
  return none ? 0 : size;
}

}  // namespace

Alarms::Alarms(const std::filesystem::path& run_directory, std::string run)
    : run_(std::move(run)), events_(events_of(run_directory), size_now(events_of(run_directory))) {}

std::vector<Notice> Alarms::take(Clock::time_point now) {
  for (std::string lines = events_.lines(); !lines.empty(); lines = events_.lines()) {
    for (std::size_t begin = 0, end = 0; (end = lines.find('\n', begin)) != std::string::npos;
         begin = end + 1) {
      const auto json = parse_line(std::string_view(lines).substr(begin, end - begin));
      if (Event event; json && json->is_object() && read_json(*json, event)) add(event, now);
    }
  }
  for (auto one = silent_.begin(); one != silent_.end();) {
    const bool long_enough = now - one->second.since >= kPatience;
    if (long_enough) tell("silent", one->second.text, step_, now);
    one = long_enough ? silent_.erase(one) : std::next(one);
  }
  return std::exchange(notices_, {});
}

void Alarms::add(const Event& event, Clock::time_point now) {
  std::visit(Overloaded{[&](const Warning& warning) {
                          step_ = warning.step.value_or(step_);
                          if (needs_person(warning))
                            tell(std::string(to_string(warning.kind)), warning.text, step_, now);
                        },
                        [&](const EvaluationResult& result) {
                          step_ = result.step;
                          if (result.failed)
                            tell("evaluation", "no evaluation: " + result.reason, step_, now);
                        },
                        [&](const SaveResult& result) { step_ = result.step; },
                        [&](const RankChange& change) { handle(change, now); }, [](const auto&) {}},
             event.data);
}

/// Most silent ranks are back in a moment. Of one that is lost or killed another notice tells.
void Alarms::handle(const RankChange& change, Clock::time_point now) {
  if (change.state == RankChangeKind::stalled && change.rank)
    silent_.try_emplace(*change.rank, Silent{change.text, now});
  else if (change.state == RankChangeKind::back && change.rank)
    silent_.erase(*change.rank);
  else if (change.state == RankChangeKind::lost || change.state == RankChangeKind::rebuilt)
    silent_.clear();  // ranks have other numbers
  else if (change.state == RankChangeKind::killed)
    tell("killed", change.text, step_, now);
}

void Alarms::tell(const std::string& kind, const std::string& text, std::int64_t step,
                  Clock::time_point now) {
  const auto last = told_.find(kind);
  if (last != told_.end() && now - last->second < kBetween) return;
  told_[kind] = now;
  notices_.push_back(
      {.event = "warning", .text = run_ + ": " + text, .step = step, .code = {}, .kind = kind});
}

}  // namespace footplate
