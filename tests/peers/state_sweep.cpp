// What comparing the ranks' state costs the training thread: a slice hashed beside each step, and all of it
// at once every so many. Argument: millions of parameters. Prints a line of JSON.
#include "runtime/state/state_sweep.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/peers/large_state.h"

namespace footplate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kPeriod = 100;  ///< guard.check_every
constexpr auto kStep = std::chrono::milliseconds(100);
constexpr std::size_t kWorkFloats = 1 << 18;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What a step computes: one pass after the other over memory that fits into a cache.
class Work {
 public:
  void passes(std::int64_t count) {
    for (std::int64_t pass = 0; pass < count; ++pass)
      for (float& value : values_) value = value * 0.999F + 0.001F;
  }
  /// How many take kStep: tried until one guess leads to the next.
  std::int64_t passes_of_step() {
    constexpr int kGuesses = 5;
    const double wanted = std::chrono::duration<double>(kStep).count();
    std::int64_t guess = 1000;
    for (int i = 0; i < kGuesses; ++i) {
      const auto start = Clock::now();
      passes(guess);
      guess = std::max<std::int64_t>(
          1, static_cast<std::int64_t>(static_cast<double>(guess) * wanted / seconds_since(start)));
    }
    return guess;
  }
  float first() const { return values_.front(); }

 private:
  std::vector<float> values_ = std::vector<float>(kWorkFloats, 1.0F);
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

int run(std::size_t millions) {
  const LargeState state(millions);
  Work work;
  const std::int64_t passes = work.passes_of_step();
  StateSweep sweep(state.table);
  std::vector<double> on_thread, with, without;
  // In turns, so that what else the machine does falls on both.
  for (std::int64_t step = 0; step < 2 * kPeriod; ++step) {
    const bool sweeps = step % 2 == 0;
    const auto start = Clock::now();
    if (sweeps) sweep.begin(step / 2, kPeriod);
    double spent = seconds_since(start);
    work.passes(passes);
    const auto computed = Clock::now();
    if (sweeps) sweep.finish();
    spent += seconds_since(computed);
    (sweeps ? with : without).push_back(seconds_since(start));
    if (sweeps) on_thread.push_back(spent);
  }
  const auto start = Clock::now();
  const std::uint64_t whole = state.table.hash();
  const double whole_s = seconds_since(start);
  double mean = 0;
  for (const double one : on_thread) mean += one / static_cast<double>(on_thread.size());
  std::printf(
      "{\"bytes\": %zu, \"period\": %lld, \"step_ms\": %.3f, \"mean_us\": %.3f, \"median_us\": %.3f, "
      "\"most_us\": %.3f, \"step_ratio\": %.5f, \"whole_ms\": %.3f, \"ignore\": %d}\n",
      state.bytes, static_cast<long long>(kPeriod), median(without) * 1e3, mean * 1e6,
      median(on_thread) * 1e6, *std::max_element(on_thread.begin(), on_thread.end()) * 1e6,
      median(with) / median(without), whole_s * 1e3, whole == 0 || work.first() == 0 ? 1 : 0);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace footplate

int main(int argc, char** argv) {
  return footplate::run(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 100);
}
