// footplate inspect: the checkpoints of a run, and what is in one.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "console/cli/commands.h"
#include "console/cli/inspection_json.h"
#include "console/cli/programs.h"
#include "console/client/link/find_run.h"
#include "console/client/render/render.h"
#include "console/client/render/text.h"
#include "console/client/runs/run_record.h"
#include "console/launch/start/ask_program.h"
#include "console/launch/start/find_rank.h"
#include "protocol/exit_codes.h"
#include "protocol/order.h"
#include "protocol/value.h"
#include "run_files/checkpoint_folders.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::hours kInspectionTakes{24};  ///< every byte of every checkpoint, from a slow disk

struct InspectOptions {
  std::string run;
  std::string ref;
  bool verify = false;
  bool tensors = false;
  bool json = false;
};

/// "2026-11-20 19:30": of ISO 8601 in UTC.
std::string minute_of(const std::string& created) {
  std::string text = created.substr(0, std::string_view("2026-11-20T19:30").size());
  if (const auto t = text.find('T'); t != std::string::npos) text[t] = ' ';
  return text;
}

/// "1.895", or "1.895 @600" where that was evaluated before the save, at step 600. Empty: not known.
std::string loss_of(const LoggedMetrics& metrics, std::int64_t step) {
  const auto loss = metrics.number("eval/loss");
  const auto at = metrics.number("eval/step");
  if (!loss || !at) return "";
  const auto evaluated = static_cast<std::int64_t>(*at);
  return loss_text(*loss) + (evaluated == step ? "" : " @" + std::to_string(evaluated));
}

std::string path_under(const std::string& path, const std::string& folder) {
  return path.starts_with(folder + "/") ? path.substr(folder.size() + 1) : path;
}

/// Where no line of the table has it.
std::string best_of(const InspectedRun& found) {
  const bool is_there = std::any_of(found.checkpoints.begin(), found.checkpoints.end(),
                                    [](const ListedCheckpoint& one) { return one.best; });
  if (!found.best_evaluation || is_there) return "";
  return "no checkpoint is of the best evaluation, " + loss_text(found.best_evaluation->loss) + " at step " +
         std::to_string(found.best_evaluation->step) + "; ckpt.keep_best = 1 saves those to come\n";
}

std::string render(const InspectedRun& found) {
  const std::string folder = found.run + "/checkpoints";
  if (found.checkpoints.empty()) return found.run + " has no checkpoint\n";
  std::vector<std::vector<std::string>> rows{{"checkpoint", "step", "eval loss", "size", "saved (UTC)", ""}};
  for (const ListedCheckpoint& one : found.checkpoints) {
    const std::string name = path_under(one.path, folder);
    if (!one.error.empty()) {
      rows.push_back({name, "", "", "", "", "damaged: " + path_under(one.error, folder)});
      continue;
    }
    std::string notes = one.tag;
    if (one.best) notes += notes.empty() ? "best" : ", best";
    if (one.verified) notes += notes.empty() ? "verified" : ", verified";
    rows.push_back({name, std::to_string(one.step), loss_of(one.metrics, one.step), size_text(one.bytes),
                    minute_of(one.created), notes});
  }
  return folder + "\n" + table(rows) + best_of(found);
}

std::string list_of(const std::string& heading, const std::vector<std::vector<std::string>>& rows) {
  if (rows.empty()) return "";
  std::string text = "\n" + heading + "\n", line;
  for (const char c : table(rows)) {
    if (line.empty()) line = "  ";
    line += c;
    if (c == '\n') text += std::exchange(line, "");
  }
  return text + line;
}

std::string shown(const Json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// What is in force there by an order.
std::vector<std::vector<std::string>> changed_live(const Json& settings) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [name, setting] : settings_by_name(settings))
    if (setting.source.starts_with("order")) rows.push_back({name, shown(setting.value), setting.source});
  return rows;
}

std::vector<std::vector<std::string>> orders_ahead(const std::vector<Order>& orders) {
  std::vector<std::vector<std::string>> rows;
  for (const Order& order : orders) {
    std::string what;
    for (const Change& change : order.changes)
      what += (what.empty() ? "" : ", ") + change.name + " = " + shown(to_json(change.value));
    for (const Call& call : order.calls) what += (what.empty() ? "" : ", ") + call.action + "()";
    rows.push_back(
        {"step " + std::to_string(order.at_step.value_or(0)), what,
         "order " + std::to_string(order.id) + (order.user.empty() ? "" : " (" + order.user + ")")});
  }
  return rows;
}

std::vector<std::vector<std::string>> rows_of_tensors(const std::vector<InspectedTensor>& tensors) {
  std::vector<std::vector<std::string>> rows;
  for (const InspectedTensor& tensor : tensors)
    rows.push_back({tensor.name, tensor.type, shown(tensor.shape), size_text(tensor.bytes), tensor.file});
  return rows;
}

std::string heading_of(const InspectedCheckpoint& found) {
  const CheckpointManifest& manifest = found.manifest;
  std::string text = found.path + "\nstep " + std::to_string(manifest.step.value_or(0)) + " of run " +
                     manifest.run + ", branch " + manifest.branch;
  if (!manifest.tag.empty()) text += ", tag " + manifest.tag;
  if (manifest.best) text += ", the best evaluation until then";
  text += " · " + std::to_string(manifest.world_size) + (manifest.world_size == 1 ? " rank" : " ranks") +
          " · " + minute_of(manifest.created) + " UTC · " + size_text(found.bytes);
  if (const std::string loss = loss_of(manifest.metrics, manifest.step.value_or(0)); !loss.empty())
    text += " · eval loss " + loss;
  if (found.verified) text += " · verified, every byte";
  return text + "\n";
}

std::string render(const InspectedCheckpoint& found) {
  const CheckpointManifest& manifest = found.manifest;
  std::string text = heading_of(found);
  text += list_of("settings that were changed live", changed_live(manifest.settings));
  text += list_of("agreed for later steps", orders_ahead(manifest.orders));
  std::vector<std::vector<std::string>> store, files;
  for (const auto& [name, value] : manifest.store.items()) store.push_back({name, shown(value)});
  text += list_of("store", store);
  for (const CheckpointFile& file : manifest.files)
    files.push_back({file.name, size_text(file.bytes), "sha256 " + file.sha256});
  text += list_of("files", files);
  return text + list_of("tensors", rows_of_tensors(found.tensors));
}

std::string render(const InspectionError& /*error*/) {
  return {};
}

/// A run by its name or path, or the folder of a checkpoint.
Result<fs::path> folder_of(const InspectOptions& options) {
  std::error_code none;
  const fs::path given = fs::absolute(options.run, none).lexically_normal();
  if (!options.run.empty() && fs::exists(given / kManifestName, none)) return given;
  const auto run = find_run(options.run, Wanted::any);
  if (run) return run->directory;
  // A copy of a run's folder, which no index has.
  if (!options.run.empty() && fs::is_directory(given / "checkpoints", none)) return given;
  return tl::unexpected(run.error());
}

Result<int> inspect(const InspectOptions& options) {
  const auto folder = folder_of(options);
  if (!folder) return tl::unexpected(folder.error());
  std::vector<std::string> arguments{"--inspect", folder->string()};
  if (!options.ref.empty()) arguments.insert(arguments.end(), {"--ref=" + options.ref});
  if (options.verify) arguments.emplace_back("--verify");
  if (options.tensors) arguments.emplace_back("--tensors");
  const auto rank = find_rank(program_folder());
  if (!rank) return tl::unexpected(rank.error());
  const fs::path& program = *rank;
  const auto answer = ask_program(program, arguments, "", STDOUT_FILENO, kInspectionTakes);
  if (!answer) return tl::unexpected(answer.error());
  const Json found = Json::parse(answer->text, nullptr, /*allow_exceptions=*/false);
  if (!found.is_object())
    return fail(ErrorKind::failed,
                program.string() + " ended with code " + std::to_string(answer->code) + " and said nothing");
  const auto read = inspection_from_json(found);
  if (!read)
    return fail(ErrorKind::failed,
                "what " + program.string() + " says can't be read: " + read.error().message);
  if (const auto* error = std::get_if<InspectionError>(&*read))
    return fail(answer->code == static_cast<int>(ExitCode::usage) ? ErrorKind::usage : ErrorKind::failed,
                printable(error->text));
  const std::string text = options.json ? found.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                                        : std::visit([](const auto& one) { return render(one); }, *read);
  std::fputs(for_output(printable(text), STDOUT_FILENO).c_str(), stdout);
  return answer->code;
}

}  // namespace

Handler declare_inspect(CLI::App& command) {
  auto options = std::make_shared<InspectOptions>();
  command.add_option(
      "RUN|CHECKPOINT", options->run,
      "a run's name or path, or a checkpoint's folder; left out: your only live run, or the newest");
  command.add_option("REF", options->ref,
                     "one of the run's checkpoints: a step (the nearest before), -500, a tag, best, latest");
  command.add_flag("--verify", options->verify, "read every byte, and compare the hashes");
  command.add_flag("--tensors", options->tensors, "list the tensors of a checkpoint");
  command.add_flag("--json", options->json, "as JSON");
  return [options] { return inspect(*options); };
}

}  // namespace footplate
