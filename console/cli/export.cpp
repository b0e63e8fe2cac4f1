// footplate export: a run's metrics in the format of another program.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "console/cli/commands.h"
#include "console/client/link/find_run.h"
#include "console/sinks/follow.h"

namespace footplate {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};

struct ExportOptions {
  std::string run;
  std::string format;
  std::string out;
  bool follow = false;
};

Result<int> export_metrics(const ExportOptions& options) {
  const auto kind = sinks::find_sink_kind(options.format);
  if (!kind) return tl::unexpected(kind.error());
  const auto run = find_run(options.run, Wanted::any);
  if (!run) return tl::unexpected(run.error());
  const auto out =
      options.out.empty() ? run->directory / (*kind)->usual_name : std::filesystem::path(options.out);
  auto sink = (*kind)->open({out, run->name()});
  if (!sink) return tl::unexpected(sink.error());
  sinks::MetricsFile metrics(run->directory);
  std::size_t lines = 0;
  for (bool last = false;;) {
    const auto passed = metrics.pass_on(**sink);
    if (!passed) return tl::unexpected(passed.error());
    lines += *passed;
    if (last || !options.follow) break;
    const auto now = read_run(run->directory);
    last = !now || now->life != Life::live;  // what came in between is read once more
    if (!last) std::this_thread::sleep_for(kBetweenLooks);
  }
  // A pipe has the metrics, and nothing else.
  std::error_code ignored;
  const bool kept =
      (std::filesystem::is_regular_file(out, ignored) || std::filesystem::is_directory(out, ignored)) &&
      !std::filesystem::equivalent(out, "/dev/stdout", ignored);
  std::fprintf(kept ? stdout : stderr, "%s: %zu lines of metrics in %s\n", run->name().c_str(), lines,
               out.c_str());
  if (lines == 0) std::fputs("nothing has been logged yet; --follow waits for it\n", stderr);
  return 0;
}

}  // namespace

Handler declare_export(CLI::App& command) {
  auto options = std::make_shared<ExportOptions>();
  std::string formats;
  for (const sinks::SinkKind& kind : sinks::sink_kinds())
    formats += (formats.empty() ? "" : "; ") + std::string(kind.name) + ": " + kind.help;
  command.add_option("RUN", options->run, "name or path; left out: the only live run, else the newest");
  command.add_option("--to", options->format, formats)->required();
  command.add_option("-o,--out", options->out, "file or folder; left out: one in the run's directory");
  command.add_flag("-f,--follow", options->follow, "goes on until the run ends");
  return [options] { return export_metrics(*options); };
}

}  // namespace footplate
