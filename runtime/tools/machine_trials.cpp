#include "runtime/tools/machine_trials.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <vector>

#include "protocol/exit_codes.h"
#include "protocol/host_name.h"
#include "runtime/comm/mpi/mpi_communicator.h"
#include "runtime/comm/mpi/mpi_session.h"
#include "runtime/comm/mpi/mpi_trial.h"
#include "runtime/device/host_kernels/product_times.h"
#include "runtime/rank/versions.h"

namespace footplate {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kRepeated = 50'000'000;  ///< reductions up to this size are timed more than once
constexpr int kRepetitions = 5;
constexpr int kPattern = 8;  ///< values repeat after so many elements; small whole numbers add up exactly

/// The file that a library of this process was loaded from; empty for none.
std::string loaded_from(const std::string& library) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (const auto path = line.find('/');
        path != std::string::npos && line.find(library) != std::string::npos)
      return line.substr(path);
  return {};
}

int cores_of_this_process() {
  cpu_set_t cores;
  return ::sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 0;
}

/// versions(), with where they are and what they run on.
Json installation() {
  Json found = versions();
  found.update({{"host", host_name()},
                {"cores", cores_of_this_process()},
                {"libtorch_file", loaded_from("libtorch_cpu.so")},
                {"mpi_file", loaded_from("libmpi.so")},
                {"fault_tolerance", has_fault_tolerance()}});
  return found;
}

Result<double> timed_reduce(Communicator& communicator, float* values, std::int64_t elements) {
  if (auto met = communicator.barrier("doctor")->wait(); !met) return tl::unexpected(met.error());
  const auto start = Clock::now();
  const auto reduced =
      communicator.all_reduce({values, elements, DataType::float32}, ReduceOp::sum, "doctor")->wait();
  if (!reduced) return tl::unexpected(reduced.error());
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Elements that aren't the sum over the ranks of what each put there.
std::int64_t count_wrong(const float* values, std::int64_t elements, int world_size) {
  const int ranks_added = world_size * (world_size + 1) / 2;  // each puts its number, from 1 on, there
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    const int expected = ranks_added + world_size * static_cast<int>(i % kPattern);
    if (values[i] != static_cast<float>(expected)) ++wrong;
  }
  return wrong;
}

Result<Json> reduce(MpiSession& session, std::int64_t elements) {
  Ledger ledger;
  Progress progress;
  MpiCommunicator communicator(session, ledger, progress);
  communicator.set_two_levels(true);  // as training does by default
  const std::unique_ptr<float[]> values(new float[static_cast<std::size_t>(elements)]);
  for (std::int64_t i = 0; i < elements; ++i)
    values[static_cast<std::size_t>(i)] = static_cast<float>(session.rank() + 1 + i % kPattern);
  auto seconds = timed_reduce(communicator, values.get(), elements);
  if (!seconds) return tl::unexpected(seconds.error());
  std::int64_t wrong = count_wrong(values.get(), elements, session.world_size());
  const auto counted =
      communicator.all_reduce({&wrong, 1, DataType::int64}, ReduceOp::sum, "doctor's verdict")->wait();
  if (!counted) return tl::unexpected(counted.error());
  // The first one made the connections and touched the memory: the best of a few is what the machine can do.
  std::fill_n(values.get(), elements, 0.0F);
  for (int i = 0; elements <= kRepeated && i < kRepetitions; ++i) {
    const auto again = timed_reduce(communicator, values.get(), elements);
    if (!again) return tl::unexpected(again.error());
    seconds = std::min(*seconds, *again);
  }
  return Json{{"ranks", session.world_size()}, {"hosts", session.hosts()},
              {"elements", elements},          {"wrong", wrong},
              {"seconds", *seconds},           {"cores", cores_of_this_process()}};
}

/// A machine without OpenBLAS is no failure.
Json products() {
  const auto times = time_products();
  if (!times) return Json{{"missing", times.error().message}};
  return Json{{"mkl_ms", times->mkl_ms},
              {"openblas_ms", times->openblas_ms},
              {"ratio", times->ratio},
              {"openblas", times->openblas},
              {"automatic", times->automatic}};
}

int report(const Result<Json>& result, int rank) {
  if (!result)
    std::fprintf(stderr, "footplate: rank %d: %s\n", rank, result.error().message.c_str());
  else if (rank == 0)
    std::fputs(to_line(*result).c_str(), stdout);
  std::fflush(nullptr);
  return static_cast<int>(result ? ExitCode::done : ExitCode::failed);
}

}  // namespace

int run_doctor(const DoctorOptions& options) {
  if (options.what == "versions") return report(installation(), 0);
  if (options.what == "products") return report(products(), 0);
  auto session = MpiSession::start();
  if (!session) return report(tl::unexpected(session.error()), MpiSession::launched_rank());
  const int rank = (*session)->rank();
  if (options.what == "loss") ::_exit(report(lose_a_rank(**session), rank));
  const int code =
      report(options.what == "link" ? measure_link(**session) : reduce(**session, options.elements), rank);
  if (code != 0) MpiSession::abort(code);
  (*session)->finish();
  return code;
}

}  // namespace footplate
