// footplate watch: metrics of a run as they come, in lines or as plots on a terminal.
#include <poll.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "console/cli/commands.h"
#include "console/cli/print_text.h"
#include "console/cli/via.h"
#include "console/client/link/find_run.h"
#include "console/client/link/live_link.h"
#include "console/client/prompt/plain_terminal.h"
#include "console/client/render/event_text.h"
#include "console/client/render/metric_log.h"
#include "console/client/render/render.h"
#include "console/client/render/text.h"

namespace footplate {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto kBetweenDrawings = 200ms;
constexpr const char* kUsualMetric = "train/loss";

/// The terminal as a picture: another screen, no cursor, nothing typed shows; all of it put back at the end.
class Picture {
 public:
  Picture() {
    ::tcgetattr(STDIN_FILENO, &before_);
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON);
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &quiet);
    put("\x1b[?1049h\x1b[?25l");
  }
  ~Picture() {
    put("\x1b[?25h\x1b[?1049l");
    ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  /// Whether what has been typed asks to leave: q, or the end of stdin. Reads what is there.
  static bool wants_to_leave() {
    pollfd keys{STDIN_FILENO, POLLIN, 0};
    if (::poll(&keys, 1, 0) <= 0) return false;
    std::array<char, 256> typed{};
    const ssize_t count = ::read(STDIN_FILENO, typed.data(), typed.size());
    if (count < 0) return errno != EINTR && errno != EAGAIN;
    const std::string_view text(typed.data(), static_cast<std::size_t>(count));
    return text.empty() || text.find_first_of("qQ\x04") != std::string_view::npos;
  }
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;

  void show(const std::vector<std::string>& rows, std::size_t height) const {
    std::string text = "\x1b[H";
    for (std::size_t i = 0; i < rows.size() && i < height; ++i)
      text += in_locale(printable(rows[i])) + "\x1b[K" + (i + 1 < height ? "\r\n" : "");
    put(text + "\x1b[J");
  }

 private:
  static void put(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }
  termios before_{};
};

bool can_draw() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1 && term != nullptr && *term != '\0' &&
         std::strcmp(term, "dumb") != 0;
}

struct WatchOptions {
  std::string run;
  std::vector<std::string> metrics;
  std::int64_t last = 0;
  bool log = false;
};

class Watch final : public Background {
 public:
  Watch(const RunRecord& run, const WatchOptions& options, bool draw)
      : run_(run),
        metrics_(options.metrics),
        how_{locale_is_utf8(), options.log, static_cast<double>(options.last)},
        draw_(draw),
        link_(run.directory, {[this](const ConsoleHello&) { subscribe(); }, [](const Error&) {},
                              [this](const ConsoleLine& line) { said(line); }}),
        terminal_(make_plain_terminal(*this)) {
    log_.read(run.directory);
  }

  /// Errors (usage): an unknown metric.
  Result<void> choose() {
    for (auto& name : metrics_) {
      auto found = log_.find(name);
      if (!found) return tl::unexpected(found.error());
      name = *std::move(found);
    }
    return {};
  }

  /// Until q, Ctrl-C or the end of the run, or until nobody reads its lines: then the errno of that, else 0.
  int run() {
    const auto picture = draw_ ? std::make_unique<Picture>() : nullptr;
    while (!over() && write_error_ == 0) {
      if (picture) draw(*picture);
      if (terminal_->wait(/*with_keys=*/draw_) != Terminal::Woken::something) break;
      if (draw_ && Picture::wants_to_leave()) break;
    }
    return write_error_;
  }

  /// What there is, once.
  void print() const {
    const std::size_t height = plot_height();
    for (const auto& name : shown())
      for (const auto& row : plot(log_.series(name), terminal_->width(), height, how_))
        std::printf("%s\n", in_locale(printable(row)).c_str());
  }

  int descriptor() const override { return link_.fd(); }
  std::chrono::milliseconds patience() const override {
    return more_ ? 0ms : draw_ ? std::min(link_.patience(), wait_) : link_.patience();
  }
  void look() override { more_ = link_.look(); }
  bool over() const override {
    return !link_.connected() && (link_.record().life != Life::live || link_.refusal());
  }
  /// Why the run can't be watched any more, though it goes on.
  const std::optional<Error>& refusal() const { return link_.refusal(); }
  bool is_complete(const std::string&) override { return true; }
  Completions complete(const std::string&) override { return {}; }
  bool nothing_to_cancel() override { return false; }

 private:
  std::vector<std::string> shown() const {
    return metrics_.empty() ? std::vector<std::string>{kUsualMetric} : metrics_;
  }

  std::size_t plot_height() const {
    return std::max<std::size_t>(6, (terminal_->height() - 1) / shown().size());
  }

  void subscribe() {
    link_.ask({"subscribe", {{"topics", {"metrics", "order"}}}}, [](const Result<Json>&) {});
  }

  void said(const ConsoleLine& line) {
    const auto* event = std::get_if<Event>(&line);
    if (event == nullptr) return;
    const auto* metrics = std::get_if<LoggedMetrics>(&event->data);
    const auto* report = std::get_if<OrderReport>(&event->data);
    if (metrics != nullptr) add(*metrics);
    if (report != nullptr) log_.add_order(*report);
    changed_ = true;
    if (draw_) return;
    const std::string text =
        metrics != nullptr && !metrics_.empty() ? chosen_of(*metrics) : event_text(event->data).value_or("");
    if (text.empty()) return;
    if (!print_text(text + "\n")) write_error_ = errno;
  }

  /// Before the first line of training nobody knows what `loss` is.
  void add(const LoggedMetrics& metrics) {
    log_.add_metrics(metrics);
    if (!metrics.is_of_training() || std::exchange(named_, true)) return;
    for (auto& name : metrics_)
      if (auto found = log_.find(name)) name = *std::move(found);
  }

  /// Those that were asked for; empty where none is in it.
  std::string chosen_of(const LoggedMetrics& metrics) const {
    std::string line;
    for (const auto& name : metrics_)
      if (metrics.values.contains(name))
        line += " · " + name + " " + rounded(metrics.number(name.c_str()).value_or(NAN), 6);
    return line.empty() ? "" : "step " + std::to_string(metrics.step()) + line;
  }

  void draw(const Picture& picture) {
    const auto now = steady_clock::now();
    const std::pair size{terminal_->width(), terminal_->height()};
    if (const bool lost = !link_.why_not().empty(); lost != std::exchange(lost_, lost)) changed_ = true;
    wait_ = changed_
                ? std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(drawn_ + kBetweenDrawings - now))
                : 1000ms;
    if (size == size_ && (!changed_ || now - drawn_ < kBetweenDrawings)) return;
    size_ = size;
    drawn_ = now;
    changed_ = false;
    wait_ = 1000ms;
    std::vector<std::string> rows;
    for (const auto& name : shown())
      for (auto& row : plot(log_.series(name), size.first, plot_height(), how_))
        rows.push_back(std::move(row));
    rows.resize(size.second - 1);
    const std::string& why = link_.why_not();
    rows.push_back(cut(run_.name() + " · q ends the watching, not the run" +
                           (why.empty() ? "" : " · no connection: " + printable(why)),
                       size.first));
    picture.show(rows, size.second);
  }

  RunRecord run_;
  std::vector<std::string> metrics_;
  PlotOptions how_;
  bool draw_;
  LiveLink link_;
  std::unique_ptr<Terminal> terminal_;
  MetricLog log_;
  bool changed_ = true;
  bool more_ = false;
  bool lost_ = false;    ///< in the last picture
  bool named_ = false;   ///< metrics_ are names that are logged
  int write_error_ = 0;  ///< errno of a line that could not be written; 0: all were
  std::pair<std::size_t, std::size_t> size_;
  steady_clock::time_point drawn_{};
  std::chrono::milliseconds wait_{0};  ///< until the next picture
};

Result<int> watch_run(const WatchOptions& options) {
  std::setlocale(LC_CTYPE, "");
  const auto run = find_run(options.run, Wanted::any);
  if (!run) return tl::unexpected(run.error());
  if (run->life == Life::live && run->elsewhere()) return tl::unexpected(not_live(*run));
  const bool draw = can_draw();
  Watch watch(*run, options, draw);
  if (auto chosen = watch.choose(); !chosen) return tl::unexpected(chosen.error());
  if (run->life == Life::live)
    if (const int error = watch.run(); error != 0) return unwritten("the metrics", error);
  if (watch.refusal()) return tl::unexpected(*watch.refusal());
  if (draw || run->life != Life::live) watch.print();
  const auto now = read_run(run->directory);
  if (now && now->life != Life::live)
    std::printf("%s\n", for_output(now->name() + " " + now->outcome(), STDOUT_FILENO).c_str());
  return 0;
}

}  // namespace

Handler declare_watch(CLI::App& command) {
  auto options = std::make_shared<WatchOptions>();
  command.add_option("METRIC", options->metrics,
                     "train/loss, or the end of its name, loss; left out: the loss");
  command.add_option("-r,--run", options->run, "name or path; left out: the only live run, else the newest");
  command.add_option("--last", options->last, "draws only so many of the newest steps")
      ->check(CLI::PositiveNumber)
      ->type_name("STEPS");
  command.add_flag("--log", options->log, "draws values by powers of ten");
  return with_via(
      command, [options]() -> const std::string& { return options->run; },
      [options] { return watch_run(*options); });
}

}  // namespace footplate
