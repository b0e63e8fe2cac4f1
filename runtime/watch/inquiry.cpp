#include "runtime/watch/inquiry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace footplate {
namespace {

/// Entries in an answer: the newest ones, as far back as ranks that called different collectives are
/// compared, and those around the one that is under way, behind which hundreds may wait (LaunchQueue).
constexpr std::uint64_t kTold = 256;
constexpr std::uint64_t kAround = 32;

LedgerLine line_of(const LedgerEntry& entry, LedgerEntry::Clock::time_point now) {
  return {.sequence = entry.sequence,
          .generation = entry.generation,
          .phase = entry.phase,
          .kind = entry.kind,
          .type = entry.type,
          .elements = entry.elements,
          .variant = entry.variant,
          .step = entry.step,
          .name = entry.name,
          .digest = entry.digest,
          .running = !entry.is_finished(),
          .age_s = in_seconds(now - (entry.is_started() ? entry.started : entry.enqueued))};
}

/// "all_reduce of gradients, 1000 float32, step 5"
std::string describe(const LedgerLine& line) {
  return fmt::format("{} of {}, {} {}, step {}", to_string(line.kind), line.name, line.elements,
                     to_string(line.type), line.step);
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("rank {}", fmt::join(ranks, ", "));
}

}  // namespace

LedgerAnswer answer_of(const Ledger& ledger, LedgerEntry::Clock::time_point now) {
  LedgerAnswer answer{ledger.newest(), {}};
  const std::uint64_t last = answer.newest, under_way = ledger.current().sequence;
  const auto newest = ledger.find(last);
  const auto before = [](std::uint64_t sequence, std::uint64_t by) {
    return sequence > by ? sequence - by : 1;
  };
  const std::uint64_t first = std::min(before(under_way, kAround), before(last + 1, kTold));
  for (std::uint64_t sequence = first; newest && sequence <= last; ++sequence) {
    if (sequence > under_way + kAround && sequence + kTold <= last) continue;
    if (const auto entry = ledger.find(sequence); entry && entry->generation == newest->generation)
      answer.entries.push_back(line_of(*entry, now));
  }
  return answer;
}

Inquiry::Inquiry(Question question, int world_size)
    : question_(std::move(question)), answers_(static_cast<std::size_t>(world_size)) {}

void Inquiry::add(int source, LedgerAnswer answer) {
  for (const LedgerLine& one : answer.entries) generation_ = std::max(generation_, one.generation);
  answers_[static_cast<std::size_t>(source)] = std::move(answer);
}

std::optional<Inquiry::Verdict> Inquiry::conclude(const StatusTracker& status, Clock::time_point now,
                                                  bool different_known) const {
  auto verdict = judge(status, now, different_known);
  if (!verdict) return std::nullopt;
  verdict->limit_s = question_.limit_s;
  // What hangs may come after what differed.
  const LedgerLine* one = question_.limit_s > 0 ? entry(question_.sequence) : nullptr;
  if (one == nullptr) one = entry(verdict->sequence);
  if (one == nullptr) return verdict;
  verdict->phase = one->phase;
  verdict->step = one->step;
  return verdict;
}

std::optional<Inquiry::Verdict> Inquiry::judge(const StatusTracker& status, Clock::time_point now,
                                               bool different_known) const {
  if (!different_known)
    if (auto verdict = different()) return verdict;
  if (question_.limit_s == 0) return std::nullopt;
  if (auto verdict = missing(status, now)) return verdict;
  return slow();
}

const LedgerLine* Inquiry::entry(int rank, std::uint64_t sequence) const {
  const auto& answer = answers_[static_cast<std::size_t>(rank)];
  if (!answer) return nullptr;
  const auto found = std::ranges::find(answer->entries, sequence, &LedgerLine::sequence);
  return found != answer->entries.end() && found->generation == generation_ ? &*found : nullptr;
}

const LedgerLine* Inquiry::entry(std::uint64_t sequence) const {
  for (int rank = 0; rank < world_size(); ++rank)
    if (const LedgerLine* one = entry(rank, sequence)) return one;
  return nullptr;
}

std::uint64_t Inquiry::newest(int rank) const {
  const auto& answer = answers_[static_cast<std::size_t>(rank)];
  if (!answer || answer->entries.empty()) return 0;
  return answer->entries.back().generation == generation_ ? answer->newest : 0;
}

/// The first collective that isn't the same on all ranks that have come to it. A digest covers what was
/// called before, too: where that was longer ago than the entries reach, the oldest one is named.
std::optional<Inquiry::Verdict> Inquiry::different() const {
  std::map<std::uint64_t, std::map<std::uint64_t, std::vector<int>>> by_digest;  // sequence, digest, ranks
  for (int rank = 0; rank < world_size(); ++rank) {
    const auto& answer = answers_[static_cast<std::size_t>(rank)];
    if (!answer || newest(rank) == 0) continue;
    for (const LedgerLine& one : answer->entries) by_digest[one.sequence][one.digest].push_back(rank);
  }
  const auto differ = [](const auto& digests) { return digests.second.size() > 1; };
  const auto first = std::find_if(by_digest.begin(), by_digest.end(), differ);
  if (first == by_digest.end()) return std::nullopt;

  // The largest group is taken for the right one, of equal ones that of the lowest rank.
  std::vector<std::vector<int>> groups;
  for (const auto& [digest, ranks] : first->second) groups.push_back(ranks);
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() > b.size() : a.front() < b.front();
  });
  Verdict verdict;
  verdict.kind = CollectiveVerdict::different;
  verdict.sequence = first->first;
  std::string each;
  for (const auto& ranks : groups) {
    if (&ranks != &groups.front()) verdict.ranks.insert(verdict.ranks.end(), ranks.begin(), ranks.end());
    each += fmt::format("{}{} on {}", each.empty() ? "" : "; ", describe(*entry(ranks.front(), first->first)),
                        ranks_text(ranks));
  }
  std::sort(verdict.ranks.begin(), verdict.ranks.end());
  verdict.finding = fmt::format("the ranks are in different collectives: #{} is {}", first->first, each);
  verdict.text = verdict.finding +
                 ". What they sum is wrong from there on: stop with run.stop{save=false} and resume from a "
                 "checkpoint before it";
  return verdict;
}

std::string Inquiry::name_of(std::uint64_t sequence) const {
  const LedgerLine* one = entry(sequence);
  if (one == nullptr) return fmt::format("collective #{}", sequence);
  return fmt::format("{} #{} of {} ({} {})", to_string(one->kind), sequence, one->name, one->elements,
                     to_string(one->type));
}

/// Who hasn't launched it, or doesn't even answer.
std::optional<Inquiry::Verdict> Inquiry::missing(const StatusTracker& status, Clock::time_point now) const {
  Verdict verdict;
  verdict.kind = CollectiveVerdict::missing;
  verdict.sequence = question_.sequence;
  for (int rank = 0; rank < world_size(); ++rank)
    if (newest(rank) < question_.sequence) verdict.ranks.push_back(rank);
  if (verdict.ranks.empty()) return std::nullopt;
  verdict.finding =
      fmt::format("{} is past its deadline of {:.6g} s: it waits for {}", name_of(question_.sequence),
                  question_.limit_s, status.whom(verdict.ranks, now));
  verdict.text = verdict.finding + ". If that is normal, raise " + question_.setting;
  return verdict;
}

/// All are in it: whoever came last was slow, or the network is.
std::optional<Inquiry::Verdict> Inquiry::slow() const {
  int last = 0;
  bool running = false;
  double most = 0, least = std::numeric_limits<double>::max();
  for (int rank = 0; rank < world_size(); ++rank) {
    const LedgerLine* one = entry(rank, question_.sequence);
    if (one == nullptr) continue;
    const double age_s = one->age_s;
    running = running || one->running;
    most = std::max(most, age_s);
    if (age_s < least) last = rank;
    least = std::min(least, age_s);
  }
  if (!running) return std::nullopt;
  Verdict verdict;
  verdict.kind = CollectiveVerdict::slow;
  verdict.ranks = {last};
  verdict.sequence = question_.sequence;
  verdict.finding = fmt::format(
      "{} is past its deadline of {:.6g} s with all ranks in it: rank {} came last, {:.1f} s after the "
      "first, {:.1f} s ago",
      name_of(question_.sequence), question_.limit_s, last, most - least, least);
  verdict.text = verdict.finding + ". Look at its host and at the network, or raise " + question_.setting;
  return verdict;
}

}  // namespace footplate
