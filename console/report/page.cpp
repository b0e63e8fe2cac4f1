#include "console/report/page.h"

#include <algorithm>

#include "console/client/render/render.h"
#include "console/client/render/text.h"
#include "console/report/chart.h"

namespace footplate::report {
namespace {

constexpr std::size_t kMostRows = 500;  ///< of a table

constexpr const char* kStyle = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --faint: #6b7480; --rule: #d8dde3;
  --k0: #1f6fb2; --k1: #c4541a; --k2: #2d8a4e; --k3: #8a4fb5; --k4: #b08a00; --k5: #b53060; --bad: #c22; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e7ec; --paper: #14171b; --faint: #97a1ad; --rule: #333a42;
  --k0: #6db3ee; --k1: #f0955f; --k2: #6cc78c; --k3: #c39ae6; --k4: #dcbb45; --k5: #ee84aa; --bad: #f66; } }
body { max-width: 1040px; margin: 2rem auto; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; } figure { margin: 1.2rem 0; }
figcaption { font-weight: 600; } .key { font-weight: 400; margin-left: .8rem; } .key::before { content: "—"; margin-right: .3rem; }
svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: var(--faint); } .axes path { stroke: var(--rule); }
polyline { fill: none; stroke: currentColor; stroke-width: 1.6; } polygon { fill: currentColor; opacity: .14; }
circle { fill: currentColor; } .pale { opacity: .35; } .mark path { stroke: var(--faint); stroke-dasharray: 2 3; stroke-width: 1.5; }
.mark.failure path { stroke: var(--bad); stroke-dasharray: none; }
.c0 { color: var(--k0); } .c1 { color: var(--k1); } .c2 { color: var(--k2); } .c3 { color: var(--k3); } .c4 { color: var(--k4); }
.c5 { color: var(--k5); }
.wide { overflow-x: auto; } table { border-collapse: collapse; } th, td { text-align: left; padding: .15rem .9rem .15rem 0;
  vertical-align: top; border-bottom: 1px solid var(--rule); } th { color: var(--faint); font-weight: 500; }
td.n { text-align: right; font-variant-numeric: tabular-nums; } .bad { color: var(--bad); } .quiet { color: var(--faint); }
)css";

/// What a person sent may hold anything.
std::string clean(const std::string& text) {
  return escaped(printable(text));
}

std::string cell(const std::string& text, const char* kind = "") {
  return std::string("<td") + (*kind == '\0' ? "" : std::string(" class=\"") + kind + "\"") + ">" +
         clean(text) + "</td>";
}

/// "2026-11-24 07:36:33"
std::string second_of(const std::string& iso) {
  std::string text = iso.substr(0, std::string_view("2026-11-24T07:36:33").size());
  if (const auto t = text.find('T'); t != std::string::npos) text[t] = ' ';
  return text;
}

std::string opened(const char* heading, const std::vector<const char*>& columns) {
  std::string html = std::string("<h2>") + heading + "</h2>\n<div class=\"wide\"><table><tr>";
  for (const char* column : columns) html += std::string("<th>") + column + "</th>";
  return html + "</tr>\n";
}

std::string closed(std::size_t rows) {
  std::string html = "</table></div>\n";
  if (rows > kMostRows)
    html += "<p class=\"quiet\">and " + std::to_string(rows - kMostRows) + " more, in events.jsonl</p>\n";
  return html;
}

/// The first column of a table where there are several runs.
std::string name_cell(const std::vector<RunHistory>& runs, std::size_t run) {
  if (runs.size() == 1) return "";
  return "<td class=\"c" + std::to_string(run % kColors) + "\">" + clean(runs[run].record.name()) + "</td>";
}

std::string step_text(std::int64_t step) {
  return step < 0 ? "" : std::to_string(step);
}

std::string outcomes(const std::vector<RunHistory>& runs) {
  std::string html = opened(
      "Runs", {"run", "state", "step", "ranks", "starts", "trained for", "best evaluation", "outcome"});
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunHistory& run = runs[i];
    double best = std::numeric_limits<double>::infinity();
    for (const Stretch& stretch : run.stretches)
      if (const auto found = stretch.metrics.find("eval/loss"); found != stretch.metrics.end())
        for (const auto& piece : found->second.pieces()) best = std::min(best, piece.least);
    const StartRecord last = run.starts.empty() ? StartRecord() : run.starts.back();
    html += "<tr><td class=\"c" + std::to_string(i % kColors) + "\">" + clean(run.record.name()) + "</td>" +
            cell(run.record.state()) + cell(std::to_string(run.record.step()), "n") +
            cell(std::to_string(last.world_size), "n") + cell(std::to_string(run.starts.size()), "n") +
            cell(duration(run.last_time - run.first_time)) +
            cell(best < std::numeric_limits<double>::infinity() ? loss_text(best) : "", "n") +
            cell(run.record.outcome()) + "</tr>\n";
  }
  return html + closed(0);
}

std::vector<Mark> marks_of(const std::vector<RunHistory>& runs) {
  std::vector<Mark> marks;
  const auto take = [&](const RunHistory& run, const Moment& moment, bool failure) {
    if (moment.step < 0) return;
    const std::string name = runs.size() > 1 ? run.record.name() + ": " : "";
    marks.push_back({static_cast<double>(moment.step),
                     printable(name + "step " + std::to_string(moment.step) + " · " + moment.text + " (" +
                               moment.who + ")"),
                     failure});
  };
  for (const RunHistory& run : runs) {
    for (const Moment& moment : run.changes) take(run, moment, false);
    for (const Moment& moment : run.happenings)
      if (moment.failure || moment.start) take(run, moment, moment.failure);
  }
  if (marks.size() > kMostRows) marks.resize(kMostRows);
  return marks;
}

std::string curves(const std::vector<RunHistory>& runs, const std::vector<std::string>& metrics) {
  const auto marks = marks_of(runs);
  double last_step = 1;
  for (const RunHistory& run : runs)
    for (const Stretch& stretch : run.stretches) last_step = std::max(last_step, stretch.last_step);
  std::string html;
  for (const std::string& metric : metrics) {
    std::vector<Curve> all;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      Curve curve{runs[i].record.name(), i, metric.starts_with("eval/"), {}};
      for (const Stretch& stretch : runs[i].stretches)
        if (const auto found = stretch.metrics.find(metric); found != stretch.metrics.end())
          curve.parts.push_back({&found->second, stretch.left_at});
      if (!curve.parts.empty()) all.push_back(std::move(curve));
    }
    html += chart(metric, all, marks, last_step);
  }
  if (html.empty()) return "<p>No metric has been written yet.</p>\n";
  return "<h2>Curves</h2>\n<p class=\"quiet\">Over steps. Dashed lines: what was changed, red ones: what "
         "failed; point at one. "
         "Pale: steps that the run went back behind.</p>\n" +
         html;
}

std::string times(const std::vector<RunHistory>& runs) {
  std::string html = opened("Where the time went", {"run", "part", "share", "seconds", "ms/step"});
  bool any = false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    double all = 0;
    for (const auto& [phase, seconds] : runs[i].phase_s) all += seconds;
    std::vector<std::pair<std::string, double>> parts(runs[i].phase_s.begin(), runs[i].phase_s.end());
    std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    for (const auto& [phase, seconds] : parts) {
      any = true;
      html += "<tr><td class=\"c" + std::to_string(i % kColors) + "\">" + clean(runs[i].record.name()) +
              "</td>" + cell(phase) + cell(rounded(100 * seconds / std::max(all, 1e-12), 3) + " %", "n") +
              cell(rounded(seconds), "n") +
              cell(runs[i].trained_steps > 0 ? rounded(1000 * seconds / runs[i].trained_steps) : "", "n") +
              "</tr>\n";
    }
  }
  return any ? html + closed(0) : "";
}

/// Of all runs, by time.
std::string moments(const std::vector<RunHistory>& runs, const char* heading, const char* nothing,
                    const char* who, std::vector<Moment> RunHistory::*list) {
  std::size_t rows = 0;
  std::string html = runs.size() == 1 ? opened(heading, {"time (UTC)", "step", who, "what"})
                                      : opened(heading, {"run", "time (UTC)", "step", who, "what"});
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (const Moment& moment : runs[i].*list) {
      if (++rows > kMostRows) continue;
      html += "<tr>" + name_cell(runs, i) + cell(second_of(moment.time)) + cell(step_text(moment.step), "n") +
              cell(moment.who) + cell(moment.text, moment.failure ? "bad" : "") + "</tr>\n";
    }
  return rows == 0 ? std::string("<h2>") + heading + "</h2>\n<p>" + nothing + "</p>\n" : html + closed(rows);
}

}  // namespace

const std::vector<std::string> kUsualMetrics = {"train/loss",      "eval/loss",    "train/lr",
                                                "train/grad_norm", "perf/step_ms", "perf/tokens_per_s"};

std::string page(const std::vector<RunHistory>& runs, const std::vector<std::string>& metrics) {
  std::string names;
  std::uint64_t unreadable = 0;
  for (const RunHistory& run : runs) {
    names += (names.empty() ? "" : ", ") + run.record.name();
    unreadable += run.unreadable;
  }
  std::string html =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\">\n<title>" +
      clean(names) + " · footplate</title><style>" + kStyle + "</style></head><body>\n<h1>" + clean(names) +
      "</h1>\n";
  html += outcomes(runs) + curves(runs, metrics) + times(runs);
  html += moments(runs, "Changes", "Nothing was changed or called.", "by", &RunHistory::changes);
  html +=
      moments(runs, "What happened", "No warning, no lost rank, one start.", "kind", &RunHistory::happenings);
  if (unreadable > 0)
    html += "<p class=\"bad\">" + std::to_string(unreadable) +
            " lines of the runs' files could not be read.</p>\n";
  return html + "</body></html>\n";
}

}  // namespace footplate::report
