#include "protocol/task_name.h"
#include "runtime/schema/rows.h"
#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

std::vector<SettingRow> run_rows() {
  return {
      {.name = "run.task",
       .value = "text",
       .choices = {"text", "synthetic", "rvq", "classify"},
       .syntax = kTaskName.data(),
       .applies = Applies::fixed,
       .help = "The run trains a language model on text, a synthetic task with a given step time, a codec of "
               "speech with residual vector quantisation (rvq), a classifier of several labelled data sets "
               "(classify), or a task of your own: plugin:PATH names a shared library that is built with "
               "footplate/task.h, python:FILE.py a file with a class made from footplate.Task",
       .example = "run.task = \"text\""},
      {.name = "run.seed",
       .value = 1,
       .range = {.min = 0, .max = 4294967295.0},
       .applies = Applies::fixed,
       .aliases = {"seed", "random_seed"},
       .help = "All random numbers follow from this seed: initial parameters and batches",
       .example = "run.seed = 7"},
      {.name = "run.device",
       .value = "auto",
       .choices = {"auto", "cpu", "cuda"},
       .applies = Applies::fixed,
       .help = "Training runs on the processors (cpu) or on a device (cuda). auto takes a device where "
               "there is one",
       .example = "run.device = \"cpu\""},
      {.name = "run.deterministic",
       .value = false,
       .applies = Applies::fixed,
       .aliases = {"deterministic"},
       .help = "On a device, too, the same run has the same bits. Only kernels that add up in a fixed "
               "order are used: they may be slower, and an operation that has none is an error. Runs on "
               "processors always have the same bits",
       .example = "run.deterministic = true"},
      {.name = "run.threads",
       .value = 0,
       .unit = "threads",
       .range = {.min = 0, .max = 1024},
       .applies = Applies::fixed,
       .aliases = {"threads", "num_threads", "omp_num_threads"},
       .help = "Each rank computes with this many threads. 0 divides the cores that the run "
               "may use among the ranks of the host",
       .example = "run.threads = 1"},
      {.name = "run.blas",
       .value = "auto",
       .choices = {"auto", "mkl", "openblas"},
       .applies = Applies::fixed,
       .aliases = {"blas", "run.products"},
       .help =
           "This library multiplies float32 matrices on processors. LibTorch brings MKL, which takes a "
           "slower path on processors with AVX-512 that aren't Intel's. auto takes OpenBLAS there, if it is "
           "installed, and MKL elsewhere. The bits of a run depend on it",
       .example = "run.blas = \"openblas\""},
      {.name = "run.peak_tflops",
       .value = 0.0,
       .unit = "TFLOP/s",
       .range = {.min = 0, .max = 1000000},
       .aliases = {"peak_tflops", "peak_flops", "run.peak_flops"},
       .help = "A rank computes this much at most; perf/mfu is the share of it that is used. 0 takes the "
               "number that goes with the device's name, where the name is known",
       .example = "run.peak_tflops = 989"},
      {.name = "run.time_limit",
       .value = 0.0,
       .unit = "s",
       .range = {.min = 0},
       .aliases = {"time_limit", "run.max_time"},
       .help = "The run saves and stops (exit code 75) this long after footplate run began. 0 sets no "
               "limit. In a Slurm job the default is two minutes before the job's end",
       .example = "run.time_limit = \"8h\""},
      {.name = "run.pause_limit",
       .value = 0.0,
       .unit = "s",
       .range = {.min = 0},
       .aliases = {"pause_limit", "guard.pause_limit"},
       .help = "A run that has been paused for this long, and was given no order meanwhile, saves and stops "
               "(exit code 75). 0 sets no limit",
       .example = "run.pause_limit = \"2h\""},
  };
}

}  // namespace

void add_run_settings(std::vector<SettingSpec>& table) {
  add(table, run_rows());
}

}  // namespace footplate
