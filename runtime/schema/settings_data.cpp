#include "runtime/schema/rows.h"
#include "runtime/schema/settings_groups.h"

namespace footplate {
namespace {

std::vector<SettingRow> data_rows() {
  return {
      {.name = "data.corpus",
       .value = "kjv",
       .applies = Applies::fixed,
       .aliases = {"corpus", "dataset", "data.dataset", "data.path"},
       .help =
           "The run trains on this text: kjv (the King James Bible), python (the standard library's "
           "sources), or the path of a file or folder. The last 10 % are held out. With run.task = \"rvq\" "
           "these are recordings: speech, or the path of a folder of WAV files, of which every tenth is "
           "held out",
       .example = "data.corpus = \"kjv\""},
      {.name = "data.offset",
       .value = 0,
       .unit = "sequences",
       .range = {.min = 0, .max = 1e12},
       .aliases = {"offset", "data.skip", "skip_batches", "data.skip_batches", "data.skip_samples"},
       .help = "This many sequences of the training data, of each data set, are skipped: each step takes its "
               "batch from further on. Raising it by n * train.batch_size leaves out the data of the next n "
               "steps",
       .example = "data.offset = data.offset + 30 * train.batch_size"},
      {.name = "data.workers",
       .value = -1,
       .unit = "threads",
       .range = {.min = -1, .max = 256},
       .aliases = {"dataloader_num_workers", "num_workers", "data.num_workers", "workers", "loader_workers"},
       .help =
           "In each rank, this many threads load batches ahead of the steps that need them. 0 loads each "
           "batch where it is needed. -1 takes the cores that are to spare, 16 at most: a rank's cores on a "
           "device, and on the processors those that run.threads leaves. The order of the data is the same "
           "with any number",
       .example = "data.workers = 2"},
      {.name = "data.prefetch",
       .value = 2,
       .unit = "batches",
       .range = {.min = 1, .max = 1024},
       .aliases = {"dataloader_prefetch_factor", "prefetch_factor", "data.prefetch_factor", "prefetch"},
       .help =
           "Each of data.workers loads this many batches ahead. A batch is what goes through the model at "
           "once",
       .example = "data.prefetch = 4"},
      {.name = "data.cache",
       .value = "none",
       .choices = {"none", "host", "device"},
       .aliases = {"use_gpu_cache", "gpu_cache", "data.use_gpu_cache", "cache", "cache_dataset", "use_cache"},
       .help =
           "Samples that were loaded once are kept, in each rank: host in its memory, device on its device, "
           "so that they are neither loaded nor copied again. The run comes to the same bits. On the "
           "processors, device is host. It takes a task whose samples don't differ from epoch to epoch; "
           "the log says what is kept",
       .example = "data.cache = \"device\""},
      {.name = "data.cache_mib",
       .value = 4096,
       .unit = "MiB",
       .range = {.min = 1, .max = 1e9},
       .aliases = {"cache_mib", "cache_size", "data.cache_size"},
       .help =
           "Each rank keeps no more than this by data.cache. Samples that have no room are loaded as always",
       .example = "data.cache_mib = 20000"},
      {.name = "data.pin_memory",
       .value = true,
       .aliases = {"pin_memory", "dataloader_pin_memory", "dataloader.pin_memory"},
       .help = "A batch goes to a device by way of pinned memory, which no step waits for. false saves that "
               "memory, and each copy is waited for. On the processors it changes nothing",
       .example = "data.pin_memory = false"},
      {.name = "data.replacement",
       .value = false,
       .applies = Applies::fixed,
       .aliases = {"replacement", "with_replacement", "data.with_replacement", "sample_with_replacement"},
       .help = "Each sample is drawn from all of its data set, so that one may come twice in an epoch, and "
               "another one not at all. false: an epoch has each sample once. Samples that a task computes "
               "by their number, and windows of a text, are drawn as always",
       .example = "data.replacement = true"},
  };
}

}  // namespace

void add_data_settings(std::vector<SettingSpec>& table) {
  add(table, data_rows());
}

}  // namespace footplate
