// The collective engine side by side with what it replaces: `mpirun -n N collectives [MILLION_ELEMENTS]`.
// Each pair runs in alternation, and rank 0 prints medians as one line of JSON (scripts/bench collectives).

#include <fmt/format.h>
#include <sys/time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/huge_pages.h"
#include "runtime/comm/batch_all_reduce.h"
#include "runtime/comm/chunks.h"
#include "runtime/comm/mpi/mpi_communicator.h"
#include "runtime/comm/mpi/mpi_session.h"
#include "runtime/comm/shares.h"
#include "runtime/comm/watchdog.h"
#include "tests/peers/bench_wait.h"

namespace footplate {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr int kDataSets = 8;
constexpr int kMetrics = 4;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Of this thread: whatever else runs on the machine doesn't count.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class Bench {
 public:
  explicit Bench(MpiSession& session) : comm_(session, ledger_, progress_) {}

  /// Medians of the seconds that each of `ways` takes, `rounds` times in turn.
  std::vector<double> compare(int rounds, const std::vector<std::function<void()>>& ways) {
    std::vector<std::vector<double>> took(ways.size());
    for (int round = 0; round < rounds; ++round) {
      for (std::size_t way = 0; way < ways.size(); ++way) {
        wait(comm_.barrier("bench"));
        const auto start = Clock::now();
        ways[way]();
        took[way].push_back(Seconds(Clock::now() - start).count());
      }
    }
    std::vector<double> medians;
    for (auto& one : took) medians.push_back(median(std::move(one)));
    return medians;
  }

  /// Loss sum, correct, tokens and batches of each data set.
  std::string metrics() {
    std::vector<double> loss(kDataSets, 1.5);
    std::vector<std::int64_t> counts(static_cast<std::size_t>(kDataSets) * (kMetrics - 1), 7);
    std::vector<Buffer> buffers;
    for (double& one : loss) buffers.push_back({&one, 1, DataType::float64});
    for (std::int64_t& one : counts) buffers.push_back({&one, 1, DataType::int64});
    const auto each = [&] {
      for (const Buffer& buffer : buffers) wait(comm_.all_reduce(buffer, ReduceOp::sum, "bench"));
    };
    const auto each_with_timer = [&] {
      for (const Buffer& buffer : buffers) {
        set_timer(600);
        wait(comm_.all_reduce(buffer, ReduceOp::sum, "bench"));
        set_timer(0);
      }
    };
    const auto fused = [&] { wait(batch_all_reduce(comm_, buffers, ReduceOp::sum, "bench")); };
    const auto took = compare(301, {each, each_with_timer, fused});
    return fmt::format("\"each_us\":{:.3g},\"each_with_timer_us\":{:.3g},\"fused_us\":{:.3g}", took[0] * 1e6,
                       took[1] * 1e6, took[2] * 1e6);
  }

  std::string chunks(std::int64_t elements) {
    std::vector<float> values(static_cast<std::size_t>(elements), 0.0F);
    const Buffer buffer{values.data(), elements, DataType::float32};
    const auto in_pieces_of = [&](std::int64_t chunk) {
      return [this, buffer, chunk] {
        comm_.set_chunk_elements(chunk);
        wait(comm_.all_reduce(buffer, ReduceOp::sum, "bench"));
      };
    };
    const auto took = compare(5, {in_pieces_of(kLargestChunk), in_pieces_of(kDefaultChunk), in_pieces_of(0)});
    return fmt::format("\"direct_s\":{:.4g},\"chunked_s\":{:.4g},\"bands_s\":{:.4g}", took[0], took[1],
                       took[2]);
  }

  /// What sharded state is reduced by, and one all_reduce as it is by default.
  std::string shares(std::int64_t elements) {
    const std::int64_t all = padded(elements, comm_.world_size());
    const std::size_t bytes = static_cast<std::size_t>(all) * sizeof(float);
    const HugePages pages = huge_pages((bytes + kHugePage - 1) / kHugePage * kHugePage);
    std::memset(pages.get(), 0, bytes);
    const Buffer buffer{pages.get(), all, DataType::float32};
    comm_.set_chunk_elements(kDefaultChunk);
    const auto took = compare(15, {[&] { wait(comm_.all_reduce(buffer, ReduceOp::sum, "bench")); },
                                   [&] { wait(comm_.reduce_scatter(buffer, ReduceOp::sum, "bench")); },
                                   [&] { wait(comm_.all_gather_shares(buffer, "bench")); }});
    return fmt::format("\"whole_s\":{:.4g},\"scatter_s\":{:.4g},\"gather_s\":{:.4g}", took[0], took[1],
                       took[2]);
  }

  /// Processor time that the ledger costs an operation, with a watchdog that looks after it.
  std::string ledger() {
    Ledger ledger;
    const Watchdog watchdog(ledger, Deadlines{}, [](const Watchdog::Finding&) {});
    constexpr int kOperations = 1'000'000;
    std::vector<double> took;
    for (int round = 0; round < 5; ++round) {
      const double start = processor_seconds();
      for (int i = 0; i < kOperations; ++i) {
        const auto sequence =
            ledger.enqueue(entry(Collective::all_reduce, {nullptr, i, DataType::float32}, "gradients"));
        ledger.start(sequence);
        ledger.finish(sequence);
      }
      took.push_back((processor_seconds() - start) / kOperations);
    }
    return fmt::format("\"ledger_ns\":{:.4g}", median(took) * 1e9);
  }

 private:
  /// As a deadline for each call is set without a watchdog.
  static void set_timer(int seconds) {
    itimerval timer{};
    timer.it_value.tv_sec = seconds;
    setitimer(ITIMER_REAL, &timer, nullptr);
  }

  Ledger ledger_;
  Progress progress_;
  MpiCommunicator comm_;
};

}  // namespace
}  // namespace footplate

int main(int argc, char** argv) {
  const long millions = argc > 1 ? std::atol(argv[1]) : 100;
  auto session = footplate::MpiSession::start();
  if (!session) return 1;
  {
    footplate::Bench bench(**session);
    const std::string line = bench.metrics() + "," + bench.chunks(millions * 1'000'000) + "," +
                             bench.shares(millions * 1'000'000) + "," + bench.ledger();
    if ((*session)->rank() == 0) std::printf("{%s}\n", line.c_str());
  }
  (*session)->finish();
  return 0;
}
