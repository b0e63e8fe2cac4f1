#include "runtime/comm/ledger.h"

namespace footplate {

std::uint64_t Ledger::enqueue(const char* kind, const char* name, std::int64_t elements, std::int64_t step) {
  std::lock_guard lock(mutex_);
  ++last_;
  LedgerEntry& entry = ring_[last_ % kSize];
  entry = LedgerEntry{};
  entry.sequence = last_;
  entry.kind = kind;
  entry.name = name;
  entry.elements = elements;
  entry.step = step;
  entry.enqueued = LedgerEntry::Clock::now();
  return last_;
}

void Ledger::start(std::uint64_t sequence) {
  std::lock_guard lock(mutex_);
  LedgerEntry& entry = ring_[sequence % kSize];
  if (entry.sequence == sequence) entry.started = LedgerEntry::Clock::now();
}

void Ledger::finish(std::uint64_t sequence) {
  std::lock_guard lock(mutex_);
  LedgerEntry& entry = ring_[sequence % kSize];
  if (entry.sequence == sequence) entry.finished = LedgerEntry::Clock::now();
}

LedgerEntry Ledger::current() const {
  std::lock_guard lock(mutex_);
  const std::uint64_t oldest = last_ < kSize ? 1 : last_ - kSize + 1;
  for (std::uint64_t sequence = oldest; sequence <= last_; ++sequence) {
    const LedgerEntry& entry = ring_[sequence % kSize];
    if (entry.finished == LedgerEntry::Clock::time_point{}) return entry;
  }
  return last_ == 0 ? LedgerEntry{} : ring_[last_ % kSize];
}

}  // namespace footplate
