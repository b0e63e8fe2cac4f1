#include "console/host/run/event_ring.h"

#include <gtest/gtest.h>

#include "protocol/frame.h"

namespace footplate::host {
namespace {

Event note(std::size_t bytes) {
  Event event;
  event.data = Note{812, std::string(bytes, 'x'), "order 1 (ann)"};
  return event;
}

/// Sequence numbers that a reader from the beginning still gets, and how many it is told to have lost.
std::pair<std::vector<std::uint64_t>, std::uint64_t> read_all(const EventRing& ring) {
  EventRing::Reader reader;
  reader.next = 1;
  std::vector<std::uint64_t> numbers;
  std::uint64_t lost = 0;
  while (const auto line = ring.next_for(reader)) {
    const Json event = parse_line(*line).value();
    numbers.push_back(event["sequence"]);
    lost += event.value("lost", std::uint64_t{0});
  }
  return {numbers, lost};
}

using Numbers = std::vector<std::uint64_t>;

TEST(EventRing, KeepsTheNewestByNumber) {
  EventRing ring(3, 1'000'000);
  for (int i = 0; i < 5; ++i) ring.push(note(10));
  EXPECT_EQ(ring.oldest_sequence(), 3U);
  EXPECT_EQ(read_all(ring), std::pair(Numbers({3, 4, 5}), std::uint64_t{2}));
}

TEST(EventRing, KeepsTheNewestByTheirBytes) {
  EventRing ring(100, 10'000);
  for (int i = 0; i < 5; ++i) ring.push(note(3000));
  EXPECT_EQ(read_all(ring), std::pair(Numbers({3, 4, 5}), std::uint64_t{2}));
  ring.push(note(8000));
  EXPECT_EQ(read_all(ring), std::pair(Numbers({6}), std::uint64_t{5}));
  ring.push(note(20'000));  // the newest in any case
  EXPECT_EQ(read_all(ring), std::pair(Numbers({7}), std::uint64_t{6}));
  for (int i = 0; i < 4; ++i) ring.push(note(100));
  EXPECT_EQ(read_all(ring), std::pair(Numbers({8, 9, 10, 11}), std::uint64_t{7}));
}

}  // namespace
}  // namespace footplate::host
