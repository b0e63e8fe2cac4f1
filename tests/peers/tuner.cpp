// What NCCL waits for at each group of collectives: the tuner's call, with all rules there can be, of which
// the last one fits. Prints a line of JSON.
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "runtime/cuda/tuner_plugin.h"

extern "C" const footplate::nccl_abi::Tuner ncclTunerPlugin_v5;

namespace footplate {
namespace {

constexpr int kBlocks = 2000;
constexpr int kCalls = 1000;  ///< in a block

/// Processor time of this thread: whoever else uses the machine doesn't count.
double now_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double quantile(std::vector<double>& sorted, double share) {
  return sorted[std::min(sorted.size() - 1,
                         static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

std::vector<double> measure(const std::vector<TuningRule>& rules) {
  Tuning tuning;
  tuning.set_most_channels(32);
  if (!tuning.propose(1, rules) || !tuning.switch_to(1)) return {};
  bind_tuner(&tuning);
  void* context = nullptr;
  ncclTunerPlugin_v5.init(&context, 1, 8, 1, nullptr, nullptr, nullptr);
  std::vector<double> ns;
  for (int block = 0; block < kBlocks; ++block) {
    const double start = now_ns();
    for (int call = 0; call < kCalls; ++call) {
      std::array<float, nccl_abi::kAlgorithms * nccl_abi::kProtocols> costs;
      costs.fill(static_cast<float>(call + 1));
      int channels = 0;
      ncclTunerPlugin_v5.collective(context, nccl_abi::kAllReduce, 1 << 20, 1,
                                    reinterpret_cast<float**>(costs.data()), nccl_abi::kAlgorithms,
                                    nccl_abi::kProtocols, 0, &channels);
    }
    ns.push_back((now_ns() - start) / kCalls);
  }
  ncclTunerPlugin_v5.finalize(context);
  bind_tuner(nullptr);
  std::sort(ns.begin(), ns.end());
  return ns;
}

int run() {
  std::vector<TuningRule> rules(Tuning::kMostRules);
  for (auto& rule : rules) rule = {NcclCollective::all_reduce, 0, 1000, Algorithm::tree, WireProtocol::ll, 2};
  rules.back() = {NcclCollective::all_reduce, 0, 1 << 30, Algorithm::ring, WireProtocol::simple, 8};
  auto with = measure(rules);
  auto without = measure({});
  if (with.empty() || without.empty()) return 1;
  std::printf(
      "{\"calls\": %d, \"rules\": %zu, \"median_ns\": %.1f, \"p99_ns\": %.1f, \"no_rules_median_ns\": "
      "%.1f}\n",
      kBlocks * kCalls, rules.size(), quantile(with, 0.5), quantile(with, 0.99), quantile(without, 0.5));
  return 0;
}

}  // namespace
}  // namespace footplate

int main() {
  return footplate::run();
}
