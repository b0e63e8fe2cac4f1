#include "runtime/checkpoint/load_handler.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "protocol/gone_settings.h"
#include "run_files/file_names.h"
#include "run_files/json_file.h"
#include "run_files/next_start.h"
#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/resumed_settings.h"
#include "runtime/comm/agree.h"
#include "runtime/schema/actions.h"
#include "runtime/watch/event_parts.h"

namespace footplate {
namespace {

constexpr auto kOffset = "data.offset";
constexpr auto kOfThisCall = "order";  ///< the source of what the call sets, before the order has a number

tl::unexpected<Error> refused(const std::string& why) {
  return fail(ErrorKind::usage, std::string(kLoad) + ": " + why);
}

using SetByName = std::map<std::string, SettingNow>;

/// `set`: a JSON object, name → value.
Result<SetByName> read_set(const Schema& schema, const std::string& text) {
  SetByName settings;
  if (text.empty()) return settings;
  const Json given = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!given.is_object()) return refused("set is a JSON object of settings, {\"optim.lr_scale\": 0.5}");
  for (const auto& [name, json] : given.items()) {
    auto value = schema.check_live(name, json);
    if (!value) return refused(value.error().message);
    settings[schema.setting(name)->name] = {footplate::to_json(*value), ""};
  }
  return settings;
}

/// What was changed live, for settings = "keep".
void add_live(const Schema& schema, const Settings& now, SetByName& settings) {
  for (const auto& spec : schema.settings)
    if (spec.knobs.empty() && !settings.contains(spec.name) && now.has(spec.name) &&
        is_of_order(now.source(spec.name)))
      settings[spec.name] = {footplate::to_json(now.value(spec.name)), now.source(spec.name)};
}

/// skip_steps: what the steps from there on would have had is left out; `after`: as they go on.
void skip_data(const Call& call, const Settings& after, SetByName& settings) {
  const std::int64_t steps = call.integer("skip_steps");
  settings[kOffset] = {after.integer(kOffset) + steps * after.integer("train.batch_size"), ""};
}

Json to_json(const SetByName& settings) {
  Json json = Json::object();
  for (const auto& [name, setting] : settings) {
    json[name] = {{"value", setting.value}};
    if (!setting.source.empty()) json[name]["source"] = setting.source;
  }
  return json;
}

std::vector<std::string> differences(const Schema& schema, const Settings& before, const Settings& after) {
  std::vector<std::string> lines;
  for (const auto& spec : schema.settings)
    if (spec.knobs.empty() && before.has(spec.name) && before.value(spec.name) != after.value(spec.name))
      lines.push_back(fmt::format("{} {} -> {}", spec.name, to_text(before.value(spec.name)),
                                  to_text(after.value(spec.name))));
  return lines;
}

}  // namespace

LoadHandler::LoadHandler(Parts parts) : parts_(std::move(parts)), now_(parts_.settings) {}

std::vector<std::string_view> LoadHandler::actions() const {
  return {kLoad};
}

Result<void> LoadHandler::prepare(const Order& order, const Settings& after) {
  for (const Call& call : order.calls) {
    if (call.action != kLoad || parts_.communicator.rank() != 0) continue;  // one rank's look at the folder
    if (order.at_step && *order.at_step > parts_.progress.step() + 1) {
      // Its checkpoint may not have come yet: the call itself looks for that.
      if (const auto set = read_set(parts_.schema, call.text("set")); !set)
        return tl::unexpected(set.error());
      continue;
    }
    if (const auto possible = plan(call, after, parts_.progress.step()); !possible)
      return tl::unexpected(possible.error());
  }
  return {};
}

/// What the next start is configured by, before the load.
Settings LoadHandler::given() const {
  if (const auto json = read_json_file(parts_.run_directory / kGivenFile))
    if (auto settings = earlier_settings_from_json(*json, parts_.schema)) return *std::move(settings);
  return as_of_start(parts_.configured, parts_.start);
}

Result<LoadHandler::Plan> LoadHandler::plan(const Call& call, const Settings& now, std::int64_t step) const {
  auto settings = read_set(parts_.schema, call.text("set"));
  if (!settings) return tl::unexpected(settings.error());
  auto found = find_checkpoint(parts_.run_directory, call.text("ref", "latest"),
                               {parts_.branch, step, parts_.progress.best_evaluation()});
  if (!found) return refused(found.error().message);
  const Manifest& manifest = found->manifest;
  auto branch = new_branch(parts_.run_directory, call.text("branch"), manifest.step);
  if (!branch) return refused(branch.error().message);
  const auto saved = earlier_settings_from_json(manifest.settings, parts_.schema);  // the next start tells
  if (!saved) return refused(saved.error().message);

  if (call.text("settings", "restore") == "keep") add_live(parts_.schema, now, *settings);
  // As `footplate run` and the ranks of the next start come to theirs.
  const auto settings_after = [&] {
    const LoadTarget target{found->path.string(), manifest.step, *branch,
                            to_json(*settings),   kOfThisCall,   {}};
    const Settings configured = with_loaded_settings(given(), parts_.schema, target);
    const std::int64_t saved_in = manifest.start > 0 ? manifest.start : parts_.start;
    return merge_resumed(parts_.schema, configured, *saved, saved_in).settings;
  };
  if (call.has("skip_steps")) skip_data(call, settings_after(), *settings);
  for (const auto& [name, setting] : *settings)
    if (const auto value = parts_.schema.check(name, setting.value); !value)
      return refused(value.error().message);  // what skip_steps comes to may be too much
  Settings after = settings_after();
  if (auto fits = parts_.schema.check_combination(after); !fits) return refused(fits.error().message);
  return Plan{*std::move(found), *std::move(branch), *std::move(settings), std::move(after)};
}

std::vector<Moved> LoadHandler::settings_changed(const Settings& now, std::int64_t /*step*/) {
  now_ = now;
  return {};
}

Result<CallResult> LoadHandler::call(const Call& call, std::int64_t step) {
  if (parts_.finish_saves)
    if (auto finished = parts_.finish_saves(); !finished) return tl::unexpected(finished.error());
  parts_.progress.enter(Phase::saving);  // as a save it waits for the disk
  Result<LoadTarget> found = LoadTarget();
  if (parts_.communicator.rank() == 0) found = verified(call, step);
  const auto agreed =
      agree(parts_.communicator, found ? Result<void>() : tl::unexpected(found.error())).and_then([&] {
        return from_rank(parts_.communicator, 0, footplate::to_json(*found).dump());
      });
  parts_.progress.enter(Phase::boundary);
  if (!agreed) return tl::unexpected(agreed.error());
  LoadTarget target;
  const auto read = parse_line(*agreed).and_then([&](const Json& json) { return read_json(json, target); });
  if (!read) return tl::unexpected(read.error());
  ends_start_ = true;
  return target;
}

/// Once more, as it may be gone by now, and to the last byte.
Result<LoadTarget> LoadHandler::verified(const Call& call, std::int64_t step) const {
  const auto found = plan(call, now_, step);
  if (!found) return tl::unexpected(found.error());
  if (const auto whole = verify_checkpoint(found->checkpoint.path); !whole)
    return refused(whole.error().message + "; the run goes on as it is");
  tell(*found, step);
  return LoadTarget{found->checkpoint.path.string(),
                    found->checkpoint.manifest.step,
                    found->branch,
                    to_json(found->settings),
                    "",
                    {}};
}

void LoadHandler::tell(const Plan& plan, std::int64_t step) const {
  const auto lines = differences(parts_.schema, now_, plan.after);
  parts_.publish(warning_at(
      WarningKind::load, step,
      fmt::format("goes back from step {} to {}, in branch {}{}", step, plan.checkpoint.path.string(),
                  plan.branch, lines.empty() ? "; settings stay" : ": ") +
          fmt::format("{}", fmt::join(lines, ", "))));
}

/// Some may not have heard that the call succeeded: the gate takes it back, on all.
Result<void> LoadHandler::rejoin(const Rejoin& rejoin) {
  if (std::exchange(ends_start_, false))
    parts_.publish(warning_at(WarningKind::load, rejoin.step,
                              "ckpt.load came to nothing: a rank was lost meanwhile, and the run goes on "
                              "without it; give the order again"));
  return {};
}

}  // namespace footplate
