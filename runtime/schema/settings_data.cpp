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
       .help = "The run trains on this text: kjv (the King James Bible), python (the standard library's "
               "sources), or the path of a file or folder. The last 10 % are held out",
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
  };
}

}  // namespace

void add_data_settings(std::vector<SettingSpec>& table) {
  add(table, data_rows());
}

}  // namespace footplate
