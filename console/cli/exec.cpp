// footplate exec: one chunk of Lua in a run's console. Output and result go to stdout, what footplate says
// about the chunk to stderr.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>

#include "console/cli/commands.h"
#include "console/cli/via.h"
#include "console/client/link/find_run.h"
#include "console/client/link/run_connection.h"
#include "console/client/render/render.h"
#include "console/launch/start/signals.h"
#include "run_files/text_file.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kServersTurn = 500ms;  ///< the console's own timeout error says more: let it come first
constexpr auto kInterruptTakes = 1500ms;
constexpr int kChunkId = 1;

struct ExecOptions {
  std::string run;
  std::string code;
  std::string file;
  bool json = false;
  double timeout_s = 30;
};

struct Chunk {
  std::string code;
  std::string name;
};

Result<Chunk> read_chunk(const ExecOptions& options) {
  if (options.code.empty() == options.file.empty())
    return fail(ErrorKind::usage, "exec takes CODE or -f FILE: footplate exec 'return status()'");
  if (options.code == "-") return Chunk{{std::istreambuf_iterator<char>(std::cin), {}}, "stdin"};
  if (!options.code.empty()) return Chunk{options.code, "exec"};
  auto text = text_of_file(options.file);
  if (!text) return tl::unexpected(text.error());
  return Chunk{*std::move(text), options.file};
}

void put(std::FILE* stream, const std::string& text, bool line) {
  const std::string shown = for_output(text, ::fileno(stream));
  std::fwrite(shown.data(), 1, shown.size(), stream);
  if (line && (shown.empty() || shown.back() != '\n')) std::fputc('\n', stream);
  std::fflush(stream);
}

Result<int> finish(const RequestAnswer& answer, bool json) {
  const auto ended = answer_as<EvalAnswer>(answer.value);
  if (!ended) return tl::unexpected(ended.error());
  if (json)
    put(stdout, ended->value.dump(), true);
  else if (!ended->text.empty())
    put(stdout, ended->text, true);
  return 0;
}

/// Waits for the chunk's answer. Ctrl-C, or a timeout that the console didn't notice, interrupts it; then the
/// answer to that is waited for a moment.
class Exchange {
 public:
  Exchange(Connection& connection, Signals& signals, const ExecOptions& options,
           steady_clock::time_point deadline)
      : connection_(connection),
        signals_(signals),
        json_(options.json),
        timeout_s_(options.timeout_s),
        deadline_(deadline) {}

  Result<int> run(const Chunk& chunk) {
    auto sent = connection_.send(
        {"eval", {{"code", chunk.code}, {"name", chunk.name}, {"timeout_s", timeout_s_}}}, kChunkId);
    for (;;) {
      if (!sent) return tl::unexpected(sent.error());
      auto line = connection_.receive(deadline_, signals_.fd());
      if (!line) return tl::unexpected(line.error());
      if (*line) {
        if (auto code = on_line(**line)) return *code;
        continue;
      }
      const bool ctrl_c = !signals_.take().empty();
      if (!ctrl_c && steady_clock::now() < deadline_) continue;
      if (interrupted_) return gave_up();
      interrupted_ = true;
      timed_out_ = !ctrl_c;
      deadline_ = steady_clock::now() + kInterruptTakes;
      sent = connection_.send({"interrupt"}, kChunkId + 1);
    }
  }

 private:
  std::optional<Result<int>> on_line(const ConsoleLine& line) {
    const auto* output = std::get_if<ChunkOutput>(&line);
    if (output != nullptr && output->id == kChunkId && output->stream != OutputStream::progress) {
      const bool talk = output->stream == OutputStream::talk;
      put(talk ? stderr : stdout, output->text, talk);
    }
    const auto* answer = std::get_if<RequestAnswer>(&line);
    if (answer == nullptr || answer->id != kChunkId) return std::nullopt;
    if (timed_out_ && !answer->value)
      return fail(ErrorKind::timed_out, "no outcome within " + shortest(timeout_s_) +
                                            " s; interrupted: " + answer->value.error().message);
    return finish(*answer, json_);
  }

  Result<int> gave_up() const {
    if (!timed_out_)
      return fail(ErrorKind::script, "interrupted; the console didn't say what became of the chunk");
    return fail(ErrorKind::timed_out,
                "no answer within " + shortest(timeout_s_) +
                    " s, nor to the interrupt; see: footplate status; a longer wait: --timeout SECONDS");
  }

  Connection& connection_;
  Signals& signals_;
  bool json_;
  double timeout_s_;
  steady_clock::time_point deadline_;
  bool interrupted_ = false;
  bool timed_out_ = false;
};

Result<int> exec(const ExecOptions& options) {
  const auto chunk = read_chunk(options);
  if (!chunk) return tl::unexpected(chunk.error());
  const auto wait =
      std::chrono::duration_cast<steady_clock::duration>(std::chrono::duration<double>(options.timeout_s));
  auto connection = connect_to(options.run, steady_clock::now() + wait);
  if (!connection) return tl::unexpected(connection.error());
  Signals signals;
  auto code = Exchange(*connection, signals, options, steady_clock::now() + wait + kServersTurn).run(*chunk);
  if (code || code.error().kind != ErrorKind::unreachable) return code;
  // The connection broke: if the run is over, say how it ended instead.
  const auto run = find_run(options.run, Wanted::any);
  return run && run->life != Life::live ? tl::unexpected(not_live(*run)) : code;
}

}  // namespace

Handler declare_exec(CLI::App& command) {
  auto options = std::make_shared<ExecOptions>();
  command.add_option("CODE", options->code, "Lua; - reads it from stdin");
  command.add_option("-r,--run", options->run, "name or path; left out: the only live run");
  command.add_option("-f,--file", options->file, "read the chunk from a file");
  command.add_flag("--json", options->json, "the result as JSON");
  command
      .add_option("--timeout", options->timeout_s, "seconds to wait for the outcome (30); then exit code 6")
      ->check(CLI::Range(0.0, 1e6));
  return with_via(
      command, [options]() -> const std::string& { return options->run; },
      [options] { return exec(*options); });
}

}  // namespace footplate
