#include "runtime/schema/rows.h"
#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

std::vector<SettingRow> recovery() {
  return {
      {.name = "comm.on_timeout",
       .value = "rebuild",
       .choices = {"wait", "rebuild", "stop"},
       .help = "Decides what happens when a collective of a training step is past its deadline and all "
               "ranks answer. rebuild: communicators are rebuilt and the step is done again, up to three "
               "times, each time with twice the patience. wait: the collective is reported and waited "
               "for. stop: the run ends resumable (exit code 75). eval.on_timeout is for evaluations",
       .example = "comm.on_timeout = \"wait\""},
      {.name = "comm.on_loss",
       .value = "rebuild",
       .choices = {"rebuild", "stop"},
       .help = "Decides what happens when a rank dies. rebuild: the others go on in place with fewer "
               "ranks. stop: the run ends resumable (exit code 75), and --restarts starts it again",
       .example = "comm.on_loss = \"stop\""},
      {.name = "comm.hard_limit_s",
       .value = 1800.0,
       .unit = "s",
       .range = {.min = 0, .max = 604800},
       .help = "A rank is killed that was silent for longer, or that kept the others waiting in a collective "
               "for longer. comm.on_loss says what follows. A rank that saves isn't killed. 0 = never",
       .example = "comm.hard_limit_s = 600"},
      {.name = "comm.host_timeout_s",
       .value = 30.0,
       .unit = "s",
       .range = {.min = 0, .max = kDay},
       .applies = Applies::fixed,
       .help = "A host from which nothing came for longer is declared lost, with its ranks. comm.on_loss "
               "says what follows. 0 = never",
       .example = "comm.host_timeout_s = 10"},
      {.name = "comm.replace",
       .value = false,
       .help = "After the loss of a rank another process is started in its place, beside training. It "
               "joins at an agreed step once it is ready",
       .example = "comm.replace = true"},
  };
}

std::vector<SettingRow> reductions() {
  return {
      {.name = "comm.init_timeout_s",
       .value = 300.0,
       .unit = "s",
       .range = {.min = 1, .max = kDay},
       .applies = Applies::fixed,
       .help = "A start waits this long for all ranks to meet. A rank that doesn't arrive is "
               "named, and the run fails",
       .example = "comm.init_timeout_s = 60"},
      {.name = "comm.network",
       .value = "auto",
       .applies = Applies::fixed,
       .help = "The hosts of a run speak over these networks, given by address or interface. auto: those "
               "that the hosts' names lead to. NCCL has nccl.socket_interface",
       .example = "comm.network = \"10.1.0.0/16\""},
      {.name = "comm.ports",
       .value = "",
       .applies = Applies::fixed,
       .help = "The hosts of a run listen at these TCP and UDP ports alone, for a firewall between them; "
               "empty: at any. mpirun takes three of them, its daemon on another host one, each rank three. "
               "NCCL takes any",
       .example = "comm.ports = \"20000-20063\""},
      {.name = "comm.fan_out",
       .value = 32,
       .unit = "ranks",
       .range = {.min = 2, .max = 1024},
       .applies = Applies::fixed,
       .help = "A rank passes orders on to this many others at most, and hears from as many. A larger run "
               "has a tree of its ranks for that; in a smaller one all speak with rank 0",
       .example = "comm.fan_out = 16"},
      {.name = "comm.bucket_mb",
       .value = 4.0,
       .unit = "MiB",
       .range = {.min = 0, .max = 4096, .exclusive_min = true},
       .help =
           "Gradients are reduced in buckets of about this size. With optim.shard it is at least one stripe: "
           "2 MiB for each rank, 64 at most. With optim.shard = 2 it is at most 64 MiB",
       .example = "comm.bucket_mb = 8"},
      {.name = "comm.chunk_elements",
       .value = 1000000,
       .unit = "elements",
       .range = {.min = 0, .max = 2147483647.0},
       .aliases = {"chunk_elements", "comm.chunk_size", "chunk_size"},
       .help = "Reductions and broadcasts run in pieces of this many elements, and need as much "
               "extra memory. 0 goes by size: one piece below 100 million elements, 2 to 5 up to "
               "500 million, 10 to 20 beyond. NCCL goes by size until this is set. With more than "
               "two ranks the last bits of a sum may depend on it. What is reduced in two levels "
               "(comm.hierarchy) has pieces of its own",
       .example = "comm.chunk_elements = 4000000"},
      {.name = "comm.hierarchy",
       .value = "auto",
       .choices = {"auto", "off"},
       .aliases = {"hierarchy", "hierarchical_allreduce"},
       .help =
           "Where a run has several hosts, and several ranks on one of them, MPI reduces 131,072 elements "
           "and "
           "more in two levels, within each host and between the hosts. Less crosses the network then. The "
           "last bits of a sum depend on this setting, and on which ranks share a host",
       .example = "comm.hierarchy = \"off\""},
      {.name = "comm.overlap",
       .value = "auto",
       .choices = {"auto", "on", "off"},
       .help = "Buckets are reduced while the backward pass still runs. auto does so only with a "
               "spare core for each rank. off with optim.shard = 2: the backward pass waits for each "
               "bucket",
       .example = "comm.overlap = \"off\""},
  };
}

std::vector<SettingRow> deadlines() {
  return {
      {.name = "comm.timeout_s",
       .value = 600.0,
       .unit = "s",
       .range = {.min = 0, .max = kDay, .exclusive_min = true},
       .role = Role::operate,
       .aliases = {"comm.timeout", "timeout", "nccl_timeout"},
       .help = "A collective of a training step that takes longer is reported: which rank is missing, "
               "which is slow. Counts from 10 million elements on, where it is longer than the deadline of "
               "that size; smaller ones have comm.small_timeout_s. comm.on_timeout says what follows",
       .example = "comm.timeout_s = 1200"},
      {.name = "comm.eval_timeout_s",
       .value = 1800.0,
       .unit = "s",
       .range = {.min = 0, .max = kDay, .exclusive_min = true},
       .role = Role::operate,
       .aliases = {"eval_timeout", "eval.timeout"},
       .help = "A collective of an evaluation that takes longer is reported: which rank is missing, "
               "which is slow. Counts from 10 million elements on, as comm.timeout_s does. "
               "eval.on_timeout says what follows",
       .example = "comm.eval_timeout_s = \"1h\""},
      {.name = "comm.small_timeout_s",
       .value = 300.0,
       .unit = "s",
       .range = {.min = 0, .max = kDay, .exclusive_min = true},
       .role = Role::operate,
       .help = "A collective of less than 10 million elements has this deadline, in every phase: buckets "
               "of gradients (comm.bucket_mb) and the sums of an evaluation among them",
       .example = "comm.small_timeout_s = 60"},
      {.name = "comm.medium_timeout_s",
       .value = 900.0,
       .unit = "s",
       .range = {.min = 0, .max = kDay, .exclusive_min = true},
       .role = Role::operate,
       .help = "A collective of 10 to 100 million elements has at least this deadline, in every phase",
       .example = "comm.medium_timeout_s = 600"},
      {.name = "comm.large_timeout_s",
       .value = 1800.0,
       .unit = "s",
       .range = {.min = 0, .max = kDay, .exclusive_min = true},
       .role = Role::operate,
       .help = "A collective of more than 100 million elements has at least this deadline, in every phase",
       .example = "comm.large_timeout_s = 3600"},
      {.name = "comm.metrics_every",
       .value = 50,
       .unit = "steps",
       .or_time = true,
       .range = {.min = 0, .max = kManySteps},
       .role = Role::operate,
       .help = "What rank 0 has counted of its collectives is logged once in this many steps, or in this "
               "time (\"10s\"), as comm/…: how many, bytes, MB/s of all-reduces, latency of small ones, "
               "time-outs. 0 = never",
       .example = "comm.metrics_every = 100"},
      {.name = "comm.auto",
       .value = "advise",
       .choices = {"off", "advise", "apply"},
       .help = "Decides what happens when collectives keep going past a deadline and end after all. "
               "advise: a warning says once what to set (a longer deadline, smaller pieces). apply: "
               "footplate sets it by an order of its own, up to ten times what was set",
       .example = "comm.auto = \"apply\""},
  };
}

}  // namespace

void add_comm_settings(std::vector<SettingSpec>& table) {
  add(table, recovery());
  add(table, reductions());
  add(table, deadlines());
}

}  // namespace footplate
