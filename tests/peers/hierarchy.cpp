// Reductions in two levels beside those of all ranks at once: `mpirun -n N hierarchy ELEMENTS ROUNDS`, on
// several hosts. Both run in alternation; rank 0 prints medians as one line of JSON (scripts/bench
// hierarchy).

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/huge_pages.h"
#include "runtime/comm/mpi/mpi_communicator.h"
#include "runtime/comm/mpi/mpi_session.h"
#include "runtime/comm/mpi/patience.h"
#include "runtime/comm/shares.h"
#include "tests/peers/bench_wait.h"

namespace footplate {
namespace {

using Clock = std::chrono::steady_clock;

class Hierarchy {
 public:
  explicit Hierarchy(MpiSession& session) : comm_(session, ledger_, progress_) {}

  std::string measure(std::int64_t elements, int rounds) {
    const std::int64_t all = padded(elements, comm_.world_size());
    const std::size_t bytes = static_cast<std::size_t>(all) * sizeof(float);
    const HugePages pages = huge_pages((bytes + kHugePage - 1) / kHugePage * kHugePage);
    std::memset(pages.get(), 0, bytes);
    const Buffer buffer{pages.get(), all, DataType::float32};
    std::string line = fmt::format("\"elements\":{},\"ranks\":{}", all, comm_.world_size());
    const auto compare = [&](const char* name, const std::function<std::unique_ptr<Work>()>& launch) {
      std::vector<double> took[2];
      for (int round = 0; round < 2 * rounds; ++round) {
        comm_.set_two_levels(round % 2 == 1);
        wait(comm_.barrier("bench"));
        const auto start = Clock::now();
        wait(launch());
        took[round % 2].push_back(std::chrono::duration<double>(Clock::now() - start).count());
      }
      for (auto& one : took) std::sort(one.begin(), one.end());
      line += fmt::format(",\"{}_flat_s\":{:.5g},\"{}_two_levels_s\":{:.5g}", name,
                          took[0][took[0].size() / 2], name, took[1][took[1].size() / 2]);
    };
    compare("all_reduce", [&] { return comm_.all_reduce(buffer, ReduceOp::sum, "bench"); });
    compare("reduce_scatter", [&] { return comm_.reduce_scatter(buffer, ReduceOp::sum, "bench"); });
    compare("all_gather", [&] { return comm_.all_gather_shares(buffer, "bench"); });
    return line;
  }

 private:
  Ledger ledger_;
  Progress progress_;
  MpiCommunicator comm_;
};

}  // namespace
}  // namespace footplate

int main(int argc, char** argv) {
  auto session = footplate::MpiSession::start();
  if (!session || argc < 3) return 1;
  {
    footplate::Hierarchy hierarchy(**session);
    const std::string line = hierarchy.measure(std::atol(argv[1]), std::atoi(argv[2]));
    if ((*session)->rank() == 0) std::printf("{%s}\n", line.c_str());
  }
  (*session)->finish();
  return 0;
}
