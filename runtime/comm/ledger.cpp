#include "runtime/comm/ledger.h"

#include <algorithm>

namespace footplate {
namespace {

using Clock = LedgerEntry::Clock;

constexpr auto kRead = std::memory_order_acquire;
constexpr auto kWrite = std::memory_order_release;
constexpr auto kOwn = std::memory_order_relaxed;

Clock::rep now() {
  return Clock::now().time_since_epoch().count();
}

Clock::time_point time(Clock::rep ticks) {
  return Clock::time_point(Clock::duration(ticks));
}

/// What has to be the same on all ranks goes in; a multiplication and a shift for each (splitmix64's).
std::uint64_t mix(std::uint64_t digest, std::uint64_t value) {
  digest = (digest ^ value) * 0xbf58476d1ce4e5b9U;
  return digest ^ (digest >> 31U);
}

std::uint64_t digest_with(std::uint64_t digest, const LedgerEntry& entry) {
  const auto shape = static_cast<std::uint64_t>(entry.kind) << 40U |
                     static_cast<std::uint64_t>(entry.type) << 32U |
                     static_cast<std::uint32_t>(entry.variant);
  digest = mix(mix(digest, shape + 1), static_cast<std::uint64_t>(entry.elements));
  std::uint64_t name = static_cast<std::uint64_t>(entry.step);
  for (const char* letter = entry.name; *letter != 0; ++letter)
    name = name * 31 + static_cast<unsigned char>(*letter);
  return mix(digest, name);
}

/// 0 for none, 1 for 1 to 9 elements, 2 for 10 to 99, …
std::size_t decade(std::int64_t elements, std::size_t most) {
  std::size_t digits = 0;
  for (; elements > 0 && digits < most; elements /= 10) ++digits;
  return digits;
}

/// For counters with one writer: no locked instruction.
void add(std::atomic<std::int64_t>& counter, std::int64_t more) {
  counter.store(counter.load(kOwn) + more, kOwn);
}

}  // namespace

std::int64_t size_class(std::int64_t elements) {
  std::int64_t at_least = elements > 0 ? 1 : 0;
  for (std::size_t digits = decade(elements, Ledger::kDecades - 1); digits > 1; --digits) at_least *= 10;
  return at_least;
}

std::uint64_t Ledger::enqueue(const LedgerEntry& entry) {
  const std::uint64_t sequence = newest_.load(kOwn) + 1;
  digest_ = digest_with(digest_, entry);
  Slot& slot = ring_[sequence % kSize];
  slot.sequence.store(0, kOwn);
  slot.generation.store(generation_, kWrite);
  slot.phase.store(entry.phase, kWrite);
  slot.kind.store(entry.kind, kWrite);
  slot.type.store(entry.type, kWrite);
  slot.elements.store(entry.elements, kWrite);
  slot.step.store(entry.step, kWrite);
  slot.variant.store(entry.variant, kWrite);
  slot.name.store(entry.name, kWrite);
  slot.digest.store(digest_, kWrite);
  slot.enqueued.store(Clock::about_now().time_since_epoch().count(), kWrite);
  slot.started.store(0, kWrite);
  slot.finished.store(0, kWrite);
  slot.sequence.store(sequence, kWrite);
  newest_.store(sequence, kWrite);
  return sequence;
}

void Ledger::restart(std::uint64_t sequence, std::uint32_t generation) {
  generation_ = generation;
  digest_ = mix(0, generation);
  finished_.store(sequence, kWrite);
  newest_.store(sequence, kWrite);
}

void Ledger::start(std::uint64_t sequence) {
  Slot& slot = ring_[sequence % kSize];
  if (slot.sequence.load(kRead) == sequence) slot.started.store(now(), kWrite);
}

void Ledger::finish(std::uint64_t sequence) {
  Slot& slot = ring_[sequence % kSize];
  finished_.store(sequence, kWrite);
  if (slot.sequence.load(kRead) != sequence) return;  // more than kSize were launched since
  const Ticks end = now();
  slot.finished.store(end, kWrite);
  count(slot, end - slot.started.load(kOwn));
}

void Ledger::count(const Slot& slot, Ticks took) {
  const std::int64_t elements = slot.elements.load(kOwn);
  Count& counted = counts_[static_cast<std::size_t>(slot.kind.load(kOwn))][decade(elements, kDecades - 1)];
  add(counted.count, 1);
  add(counted.bytes, elements * static_cast<std::int64_t>(size_of(slot.type.load(kOwn))));
  add(counted.total_ns, took);
  if (took > counted.longest_ns.load(kOwn)) counted.longest_ns.store(took, kOwn);
  if (took > counted.longest_of_late_ns.load(kOwn)) counted.longest_of_late_ns.store(took, kOwn);
}

std::chrono::nanoseconds Ledger::take_longest(std::int64_t elements) const {
  std::int64_t longest = 0;
  for (const auto& of_kind : counts_)
    for (std::size_t digits = 0; digits <= decade(elements - 1, kDecades - 1); ++digits)
      longest = std::max(longest, of_kind[digits].longest_of_late_ns.exchange(0, kOwn));
  return std::chrono::nanoseconds(longest);
}

LedgerEntry Ledger::current() const {
  // Read in this order: what is finished was launched before.
  const std::uint64_t finished = finished_.load(kRead);
  const std::uint64_t newest = newest_.load(kRead);
  if (newest == 0) return {};
  const std::uint64_t oldest_kept = newest < kSize ? 1 : newest - kSize + 1;
  return find(std::clamp(finished + 1, oldest_kept, newest)).value_or(LedgerEntry{});
}

std::optional<LedgerEntry> Ledger::find(std::uint64_t sequence) const {
  const Slot& slot = ring_[sequence % kSize];
  if (sequence == 0 || slot.sequence.load(kRead) != sequence) return std::nullopt;
  LedgerEntry entry;
  entry.sequence = sequence;
  entry.generation = slot.generation.load(kRead);
  entry.phase = slot.phase.load(kRead);
  entry.kind = slot.kind.load(kRead);
  entry.type = slot.type.load(kRead);
  entry.elements = slot.elements.load(kRead);
  entry.step = slot.step.load(kRead);
  entry.variant = slot.variant.load(kRead);
  entry.name = slot.name.load(kRead);
  entry.digest = slot.digest.load(kRead);
  entry.enqueued = time(slot.enqueued.load(kRead));
  entry.started = time(slot.started.load(kRead));
  entry.finished = time(slot.finished.load(kRead));
  if (slot.sequence.load(kOwn) != sequence) return std::nullopt;
  return entry;
}

std::vector<CollectivePattern> Ledger::patterns() const {
  std::vector<CollectivePattern> patterns;
  for (std::size_t kind = 0; kind < kCollectives; ++kind) {
    std::int64_t at_least = 0;
    for (const Count& counted : counts_[kind]) {
      const std::int64_t count = counted.count.load(kOwn);
      if (count > 0)
        patterns.push_back({static_cast<Collective>(kind), at_least, count, counted.bytes.load(kOwn),
                            std::chrono::nanoseconds(counted.total_ns.load(kOwn)),
                            std::chrono::nanoseconds(counted.longest_ns.load(kOwn))});
      at_least = at_least == 0 ? 1 : at_least * 10;
    }
  }
  return patterns;
}

}  // namespace footplate
