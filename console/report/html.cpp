#include "console/report/html.h"

#include <array>
#include <cmath>
#include <cstdio>

#include "console/client/render/render.h"
#include "console/client/render/text.h"
#include "console/report/chart.h"

namespace footplate::report {

const char* const kPageStyle = R"css(
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #fff; --faint: #5f6873; --rule: #dfe3e8; --rate: #b25d00;
  --k0: #1f6fb2; --k1: #c4541a; --k2: #2d8a4e; --k3: #8a4fb5; --k4: #8a6d00; --k5: #b53060; --bad: #c22; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e7ec; --paper: #14171b; --faint: #9aa4b0; --rule: #2c333a;
  --rate: #ffb454; --k0: #6db3ee; --k1: #f0955f; --k2: #6cc78c; --k3: #c39ae6; --k4: #dcbb45; --k5: #ee84aa; --bad: #f66; } }
body { max-width: 1720px; margin: 1.5rem auto; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.charts { display: grid; margin-top: .8rem; gap: 1rem 1.5rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 720px), 1fr)); }
figure { margin: 0; max-width: 1120px; } figcaption { font-weight: 600; } .key { font-weight: 400; margin-left: .9rem; white-space: nowrap; }
.key::before { content: ""; display: inline-block; width: 1.3em; margin-right: .4em; vertical-align: .25em; border-top: 3px solid; }
.key.d1::before { border-top-style: dashed; } .key.d2::before { border-top-style: dotted; }
.key.hollow::before { width: .5em; height: .5em; border: 2px solid; border-radius: 50%; vertical-align: 0; }
figure svg { display: block; width: 100%; height: auto; } .defs { position: absolute; }
svg text { font-size: 12px; fill: var(--faint); } .axes path { stroke: var(--rule); }
@media (min-width: 1500px) { svg text { font-size: 14px; } }
path.line, path.raw { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; } path.raw { stroke-width: 1; opacity: .4; }
.d1 path { stroke-dasharray: 7 4; } .d2 path { stroke-dasharray: 2 4; }
polygon { fill: currentColor; opacity: .12; } circle { fill: currentColor; } .hollow circle { fill: var(--paper); stroke: currentColor; stroke-width: 2; }
.pale { opacity: .35; } .clip path { fill: currentColor; stroke: none; } .clip text { fill: currentColor; paint-order: stroke; stroke: var(--paper); stroke-width: 3px; }
path.nan { stroke: var(--bad); stroke-width: 6; }
.mark path { stroke: var(--faint); stroke-dasharray: 2 4; } .mark.quiet path { stroke-dasharray: none; opacity: .6; }
.mark.start path { stroke-dasharray: 6 3; } .mark.rate path { stroke: var(--rate); stroke-dasharray: none; stroke-width: 2; }
.mark.rate text { fill: var(--rate); font-weight: 600; } .mark.failure path { stroke: var(--bad); stroke-dasharray: none; }
.c0 { color: var(--k0); } .c1 { color: var(--k1); } .c2 { color: var(--k2); } .c3 { color: var(--k3); } .c4 { color: var(--k4); }
.c5 { color: var(--k5); } figcaption b { font-weight: 600; }
.m2, #smooth-0:checked ~ .charts .m1, #smooth-2:checked ~ .charts .m1 { display: none; }
#smooth-2:checked ~ .charts .m2 { display: inline; } #smooth-0:checked ~ .charts .raw { opacity: 1; stroke-width: 1.6; }
input { margin: 0 .3rem 0 .8rem; accent-color: var(--k0); } input[type=radio] + label { margin-right: .4rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; } th, td { text-align: left; padding: .2rem 1.1rem .2rem 0;
  vertical-align: top; border-bottom: 1px solid var(--rule); } th { color: var(--faint); font-weight: 500; white-space: nowrap; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } td.best { font-weight: 700; }
td.long { overflow-wrap: anywhere; min-width: 14rem; } .bad { color: var(--bad); } .quiet { color: var(--faint); }
td.name { white-space: nowrap; font-weight: 600; } summary { cursor: pointer; margin: .8rem 0; }
@media (max-width: 950px) { svg text { font-size: 15px; } th, td { padding-right: .7rem; } td.long { min-width: 9rem; } }
@media print { body { max-width: none; } figure { break-inside: avoid; } }
)css";

std::string clean(const std::string& text) {
  return escaped(printable(text));
}

std::string four_digits(double value) {
  constexpr int kDigits = 4;
  constexpr double kLeast = 1e-3, kMost = 1e5;
  if (std::isnan(value)) return "";
  const double size = std::abs(value);
  if (size < kLeast || size >= kMost) return rounded(value, kDigits);
  const int before = static_cast<int>(std::floor(std::log10(size))) + 1;
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", std::max(0, kDigits - before), value);
  return text.data();
}

std::string cell(const std::string& text, const char* kind) {
  return std::string("<td") + (*kind == '\0' ? "" : std::string(" class=\"") + kind + "\"") + ">" +
         clean(text) + "</td>";
}

std::string colored_cell(const std::string& text, std::size_t color) {
  return "<td class=\"name " + color_class(color) + "\">" + clean(text) + "</td>";
}

Table::Table(const std::vector<std::string>& columns) {
  html_ = "<div class=\"wide\"><table><tr>";
  for (const std::string& column : columns)
    html_ += column.starts_with('#') ? "<th class=\"n\">" + clean(column.substr(1)) + "</th>"
                                     : "<th>" + clean(column) + "</th>";
  html_ += "</tr>\n";
}

void Table::row(const std::string& cells) {
  if (++rows_ <= kMostRows) html_ += "<tr>" + cells + "</tr>\n";
}

std::string Table::html(const std::string& rest) const {
  return html_ + "</table></div>\n" +
         (rows_ > kMostRows
              ? paragraph("and " + std::to_string(rows_ - kMostRows) + " more, in " + rest, "quiet")
              : "");
}

std::string heading(const std::string& text) {
  return "<h2>" + clean(text) + "</h2>\n";
}

std::string paragraph(const std::string& text, const char* kind) {
  return std::string("<p") + (*kind == '\0' ? "" : std::string(" class=\"") + kind + "\"") + ">" +
         clean(text) + "</p>\n";
}

}  // namespace footplate::report
