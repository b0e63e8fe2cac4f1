// footplate inspect: the checkpoints of a run, and what is in one.
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "console/cli/commands.h"
#include "console/cli/programs.h"
#include "console/client/link/find_run.h"
#include "console/client/render/render.h"
#include "console/client/render/text.h"
#include "console/client/runs/run_record.h"
#include "console/launch/start/ask_program.h"
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

std::string loss_of(const Json& metrics) {
  const auto loss = metrics.is_object() ? number_from_json(metrics.value("eval/loss", Json())) : std::nullopt;
  return loss ? loss_text(*loss) : "";
}

std::string path_under(const std::string& path, const std::string& folder) {
  return path.starts_with(folder + "/") ? path.substr(folder.size() + 1) : path;
}

std::string render_run(const Json& found) {
  const std::string folder = text_of(found, "run") + "/checkpoints";
  const Json list = found.value("checkpoints", Json::array());
  if (list.empty()) return text_of(found, "run") + " has no checkpoint\n";
  std::vector<std::vector<std::string>> rows{{"checkpoint", "step", "eval loss", "size", "saved (UTC)", ""}};
  for (const Json& one : list) {
    const std::string name = path_under(text_of(one, "path"), folder);
    if (const std::string error = text_of(one, "error"); !error.empty()) {
      rows.push_back({name, "", "", "", "", "damaged: " + path_under(error, folder)});
      continue;
    }
    std::string notes = text_of(one, "tag");
    if (flag_of(one, "best")) notes += notes.empty() ? "best" : ", best";
    if (flag_of(one, "verified")) notes += notes.empty() ? "verified" : ", verified";
    rows.push_back({name, std::to_string(integer_of(one, "step", 0)), loss_of(one.value("metrics", Json())),
                    size_text(one.value("bytes", std::uint64_t{0})), minute_of(text_of(one, "created")),
                    notes});
  }
  return folder + "\n" + table(rows);
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
  for (const auto& [name, setting] : settings.items())
    if (text_of(setting, "source").starts_with("order"))
      rows.push_back({name, shown(setting.value("value", Json())), text_of(setting, "source")});
  return rows;
}

std::vector<std::vector<std::string>> orders_ahead(const Json& orders) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& order : orders) {
    std::string what;
    for (const Json& change : order.value("changes", Json::array()))
      what +=
          (what.empty() ? "" : ", ") + text_of(change, "name") + " = " + shown(change.value("value", Json()));
    for (const Json& call : order.value("calls", Json::array()))
      what += (what.empty() ? "" : ", ") + text_of(call, "action") + "()";
    const std::string who = text_of(order, "user");
    rows.push_back({"step " + std::to_string(integer_of(order, "at_step", 0)), what,
                    "order " + std::to_string(order.value("id", std::uint64_t{0})) +
                        (who.empty() ? "" : " (" + who + ")")});
  }
  return rows;
}

std::vector<std::vector<std::string>> rows_of_tensors(const Json& tensors) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& tensor : tensors)
    rows.push_back({text_of(tensor, "name"), text_of(tensor, "type"), shown(tensor.value("shape", Json())),
                    size_text(tensor.value("bytes", std::uint64_t{0})), text_of(tensor, "file")});
  return rows;
}

std::string render_checkpoint(const Json& found) {
  const Json manifest = found.value("manifest", Json::object());
  std::string text = text_of(found, "path") + "\nstep " + std::to_string(integer_of(manifest, "step", 0)) +
                     " of run " + text_of(manifest, "run") + ", branch " + text_of(manifest, "branch");
  if (const std::string tag = text_of(manifest, "tag"); !tag.empty()) text += ", tag " + tag;
  if (flag_of(manifest, "best")) text += ", the best evaluation until then";
  const auto ranks = integer_of(manifest, "world_size", 1);
  text += " · " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") + " · " +
          minute_of(text_of(manifest, "created")) + " UTC · " +
          size_text(found.value("bytes", std::uint64_t{0}));
  if (const std::string loss = loss_of(manifest.value("metrics", Json())); !loss.empty())
    text += " · eval loss " + loss;
  if (flag_of(found, "verified")) text += " · verified, every byte";
  text += "\n";
  const Json settings = manifest.value("settings", Json::object());
  text += list_of("settings that were changed live", changed_live(settings));
  text += list_of("agreed for later steps", orders_ahead(manifest.value("orders", Json::array())));
  std::vector<std::vector<std::string>> store, files;
  const Json kept = manifest.value("store", Json::object());
  for (const auto& [name, value] : kept.items()) store.push_back({name, shown(value)});
  text += list_of("store", store);
  const Json listed = manifest.value("files", Json::array());
  for (const Json& file : listed)
    files.push_back({text_of(file, "name"), size_text(file.value("bytes", std::uint64_t{0})),
                     "sha256 " + text_of(file, "sha256")});
  text += list_of("files", files);
  return text + list_of("tensors", rows_of_tensors(found.value("tensors", Json::array())));
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
  const fs::path program = program_folder() / "footplate-rank";
  const auto answer = ask_program(program, arguments, "", STDOUT_FILENO, kInspectionTakes);
  if (!answer) return tl::unexpected(answer.error());
  const Json found = Json::parse(answer->text, nullptr, /*allow_exceptions=*/false);
  if (!found.is_object())
    return fail(ErrorKind::failed,
                program.string() + " ended with code " + std::to_string(answer->code) + " and said nothing");
  if (found.contains("error"))
    return fail(answer->code == static_cast<int>(ExitCode::usage) ? ErrorKind::usage : ErrorKind::failed,
                printable(text_of(found, "error")));
  const std::string text = options.json ? found.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                           : found.contains("checkpoints") ? render_run(found)
                                                           : render_checkpoint(found);
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
