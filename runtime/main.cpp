// footplate-rank: one rank of a run. Started by `footplate run`, through mpirun or, for one rank, directly.

#include <malloc.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "protocol/exit_codes.h"
#include "runtime/base/cores.h"
#include "runtime/rank/rank.h"
#include "runtime/tools/check_data.h"
#include "runtime/tools/list_checkpoints.h"
#include "runtime/tools/machine_trials.h"
#include "runtime/tools/task_schema.h"

namespace {

/// Every step allocates and frees the same activations. By default the C library gives large ones back to
/// the system and fetches them again: 2,500 page faults a step of configs/kjv.lua, 5 % of its time.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most it takes
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 16 << 20);
}

/// OpenBLAS (run.blas, and the one that numpy brings) starts a thread for each core while it is opened,
/// beside those of the rank. Here, since the environment is only safe to change as long as there is one
/// thread.
void start_no_threads_of_openblas() {
  ::setenv("OPENBLAS_NUM_THREADS", "1", /*overwrite=*/0);
}

}  // namespace

int main(int argc, char** argv) {
  footplate::usable_cores();  // before OpenMP binds this thread, as OMP_PROC_BIND has it
  CLI::App app("One rank of a footplate run. `footplate run` starts it.");
  footplate::RankOptions options;
  bool schema = false;
  std::string task = "text";
  bool data = false;
  bool no_console = false;
  std::int64_t ran_ms = 0;
  footplate::InspectOptions inspected;
  footplate::DoctorOptions doctor{.what = "", .elements = 1'000'000};
  app.add_flag("--schema", schema, "print the schema of settings and actions as JSON, and end");
  app.add_option("--task", task,
                 "with --schema: a value of run.task, whose settings and actions belong to it");
  app.add_flag("--check-data", data,
               "for `footplate check`: whether the data of the settings on stdin can be had");
  app.add_option("--inspect", inspected.path, "for `footplate inspect`: a checkpoint's or a run's folder");
  app.add_option("--ref", inspected.ref, "with --inspect RUN: one of its checkpoints");
  app.add_flag("--verify", inspected.verify, "with --inspect: read every byte");
  app.add_flag("--tensors", inspected.tensors, "with --inspect: list them");
  app.add_option("--run-dir", options.run_directory, "the run directory, made by footplate run");
  app.add_option("--start", options.start, "number of this start: settings are read from config-START.json");
  app.add_option("--resume", options.resume, "auto, or the path of a checkpoint or a run");
  app.add_option("--branch", options.branch, "with --resume PATH: the branch that this start opens");
  app.add_option("--left", options.left, "with --branch: the step that ckpt.load went back from");
  app.add_option("--ran", ran_ms, "milliseconds since footplate run began");
  app.add_option("--host-groups", options.host_groups,
                 "the hosts that reductions take the ranks to be on, a number each")
      ->delimiter(',');
  app.add_flag("--no-console", no_console, "start no console");
  app.add_option("--joins", options.joins, "number of a process that rank 0 starts to join the run");
  app.add_option("--corpus", options.corpus, "with --joins: hash of the text that the ranks train on");
  app.add_option("--doctor", doctor.what, "try something for `footplate doctor`, and print what came of it")
      ->check(CLI::IsMember({"versions", "products", "reduce", "loss", "link"}));
  app.add_option("--elements", doctor.elements, "size of --doctor reduce")
      ->check(CLI::Range(1, 2'000'000'000));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(footplate::ExitCode::usage);
  }
  if (schema) return footplate::print_schema_of(task);
  if (data) return footplate::check_data();
  if (!inspected.path.empty()) return footplate::inspect(inspected);
  start_no_threads_of_openblas();
  if (!doctor.what.empty()) return footplate::run_doctor(doctor);
  if (options.run_directory.empty()) {
    std::fprintf(stderr, "footplate-rank: no --run-dir; start a run with `footplate run CONFIG`\n");
    return static_cast<int>(footplate::ExitCode::usage);
  }
  options.console = !no_console;
  options.ran = std::chrono::milliseconds(ran_ms);
  keep_freed_memory();
  return footplate::run_rank(options);
}
