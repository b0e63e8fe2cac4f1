#include "console/lua/session/chunk_console.h"

#include "protocol/words.h"

namespace footplate::lua {

ChunkConsole::ChunkConsole(const Greeting& greeting, ConsoleLink& link) : greeting_(greeting), link_(link) {
  begin(Activity::Mode::chunk, greeting.limits.chunk);
}

std::unique_ptr<Activity> ChunkConsole::begin(Activity::Mode mode, std::chrono::duration<double> limit) {
  auto activity = std::make_unique<Activity>(greeting_.schema, greeting_.settings, mode);
  activity->limit = limit;
  return std::exchange(now_, std::move(activity));
}

bool ChunkConsole::out_of_time() {
  std::string& stop = now_->stop;
  if (stop.empty() && link_.interrupted()) stop = "interrupted";
  if (stop.empty() && now_->clock.expired())
    stop =
        now_->mode == Activity::Mode::handler
            ? "stopped: a rule may run for budget_ms = " + shortest(now_->limit.count() * 1e3)
            : "stopped: a chunk may run for " + shortest(now_->limit.count()) + " s (waiting isn't counted)";
  return !stop.empty();
}

void ChunkConsole::print(std::string_view text) {
  const std::size_t limit = greeting_.limits.output_bytes;
  std::size_t& printed = now_->printed;
  if (printed >= limit || now_->mode == Activity::Mode::registering) return;
  const std::string_view shown = first_bytes(text, limit - printed);
  if (greeting_.kind != SessionKind::job)
    printed += text.size();  // a job's goes into a file, and the console bounds that
  link_.output(shown, OutputStream::out);
  if (printed >= limit) talk("output cut at " + std::to_string(limit) + " bytes");
}

void ChunkConsole::talk(std::string_view text) {
  if (now_->mode == Activity::Mode::registering) return;
  link_.output(std::string(text) + "\n", OutputStream::talk);
}

void ChunkConsole::progress(std::string_view text) {
  if (now_->asks) link_.output(text, OutputStream::progress);
}

Error ChunkConsole::malformed(std::string_view what, const Error& error) {
  return {ErrorKind::failed,
          "the console's answer to " + std::string(what) + " is malformed: " + error.message};
}

}  // namespace footplate::lua
