#include "runtime/rank/start_state.h"

#include <algorithm>

#include "protocol/store.h"
#include "run_files/file_names.h"
#include "run_files/result_file.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/resumed_settings.h"
#include "runtime/rank/start_faults.h"
#include "runtime/rank/start_up.h"
#include "runtime/tasks/registry.h"

namespace footplate {
namespace {

bool leads(StartMeeting& meeting) {
  return meeting.communicator().rank() == 0;
}

/// What of `store` survives the ckpt.load that this start goes on from, if it does. A start that was lost in
/// between changes nothing of that.
Json kept_store(const RankOptions& options) {
  for (int start = options.branch.empty() ? 0 : options.start - 1; start > 0; --start)
    if (const auto result = read_result_file(earlier_result_path(options.run_directory, start));
        result && result->load)
      return result->load->branch == options.branch ? result->load->store : Json();
  return {};
}

/// Each once: what a checkpoint has of it counts for more than the configuration.
void tell_gone(const StartState& state, std::vector<GoneSetting> saved, RankRecords& records) {
  for (const GoneSetting& one : state.gone)
    if (std::ranges::find(saved, one.name, &GoneSetting::name) == saved.end()) saved.push_back(one);
  for (const GoneSetting& one : saved) records.warn(left_out_text(state.schema, one));
}

}  // namespace

Result<void> read_configuration(StartState& state, const RankOptions& options) {
  const auto files = read_start_files(options.run_directory, options.start);
  if (!files) return tl::unexpected(files.error());
  state.record = files->record;
  auto schema = schema_of_task(Settings::text_in(files->config, "run.task", "text"));
  if (!schema) return tl::unexpected(schema.error());
  state.schema = *std::move(schema);
  auto settings = earlier_settings_from_json(files->config, state.schema, &state.gone);
  if (!settings) return tl::unexpected(settings.error());
  state.configured = state.settings = *std::move(settings);
  return state.schema.check_combination(state.settings);
}

Result<void> choose_origin(StartState& state, const RankOptions& options, StartMeeting& meeting,
                           RankRecords& records) {
  meeting.arrival().is_at("choosing a checkpoint");
  Result<Origin> mine;
  delay_choice(meeting.communicator().rank());
  if (leads(meeting))
    mine = find_origin(options.run_directory, options.resume, options.branch,
                       [&](const std::string& text) { records.warn("checkpoint skipped: " + text); });
  const auto tell = [&] { return share(meeting.communicator(), mine); };
  // Rank 0 reads all of the checkpoint, and of newer ones that are damaged.
  auto chosen =
      options.resume.empty() ? meeting.meet(tell) : meeting.meet_after("verifying the checkpoint", tell);
  if (!chosen) return tl::unexpected(chosen.error());
  state.origin = *std::move(chosen);
  return {};
}

Result<void> take_over_checkpoint(StartState& state, const RankOptions& options, StartMeeting& meeting,
                                  RankRecords& records) {
  if (state.origin.checkpoint.empty()) {
    if (leads(meeting)) tell_gone(state, {}, records);
    return {};
  }
  std::vector<GoneSetting> gone;
  const auto manifest = read_manifest(state.origin.checkpoint, kReading);
  const auto saved = manifest.and_then(
      [&](auto& it) { return earlier_settings_from_json(it.settings, state.schema, &gone); });
  if (auto agreed = meeting.agree(saved ? Result<void>() : tl::unexpected(saved.error())); !agreed)
    return agreed;
  // Its own checkpoint; one of an older footplate doesn't say which start wrote it.
  const std::int64_t own = manifest->start > 0 ? manifest->start : options.start - 1;
  const bool is_own = options.resume == "auto" || !options.branch.empty();
  auto merged = merge_resumed(state.schema, state.settings, *saved, is_own ? own : 0);
  state.settings = std::move(merged.settings);
  state.given = std::move(merged.given);
  state.of_model = std::move(merged.of_model);
  state.last_order = manifest->journal;
  state.store = manifest->store;
  take_kept(state.store, kept_store(options));
  state.kept_orders = manifest->orders;
  records.resumed({manifest->metrics});
  if (!leads(meeting)) return state.schema.check_combination(state.settings);
  for (const std::string& difference : merged.differences) records.warn("resumed with " + difference);
  tell_gone(state, std::move(gone), records);
  return state.schema.check_combination(state.settings);
}

Result<void> read_orders(StartState& state, const RankOptions& options, StartMeeting& meeting,
                         RankRecords& records, std::int64_t step) {
  auto ahead = read_orders_ahead(orders_path(options.run_directory, options.start), state.schema,
                                 state.kept_orders, state.last_order, step, options.left);
  if (auto agreed = meeting.agree(ahead ? Result<void>() : tl::unexpected(ahead.error())); !agreed)
    return agreed;
  state.ahead = *std::move(ahead);
  if (leads(meeting))
    for (const std::string& line : state.ahead.said) records.warn(line);
  return {};
}

}  // namespace footplate
