#include "console/client/render/render.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "console/client/render/text.h"

namespace footplate {
namespace {

/// Bytes that start a character, so that UTF-8 aligns.
std::size_t width(const std::string& text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

/// " · 12.5 ms/step", or nothing where it isn't known.
std::string part(const std::optional<double>& value, const std::string& unit) {
  return value && !std::isnan(*value) ? " · " + rounded(*value) + " " + unit : "";
}

/// " · loss 2.3149", or nothing where it isn't known.
std::string loss_part(const std::optional<double>& value, const char* label) {
  return value ? std::string(" · ") + label + " " + loss_text(*value) : "";
}

std::string learning_rate(const std::optional<double>& value) {
  return value && !std::isnan(*value) ? " · lr " + rounded(*value) : "";
}

std::string collective_text(const std::optional<CollectiveStatus>& collective) {
  if (!collective || !collective->running) return "";
  return collective->kind + " #" + std::to_string(collective->sequence) + ", " +
         std::to_string(collective->elements) + " elements, " + rounded(collective->age_s, 2) + " s";
}

std::vector<std::string> rank_row(const RankStatus& rank) {
  return {std::to_string(rank.rank) + (rank.stalled ? " !" : ""),
          rank.host,
          std::to_string(rank.pid),
          std::to_string(rank.step),
          rank.phase + " " + rounded(rank.phase_s, 2) + " s",
          rounded(rank.silent_s, 2) + " s",
          collective_text(rank.collective)};
}

/// "STALLED 13 s": for how long the rank has been silent that has been so longest; empty: none is.
std::string stalled_part(const std::vector<RankStatus>& ranks) {
  double longest_s = -1;
  for (const RankStatus& rank : ranks)
    if (rank.stalled) longest_s = std::max(longest_s, rank.silent_s);
  return longest_s < 0 ? "" : "STALLED " + duration(longest_s);
}

/// What is true of a run whose ranks all go on: its pace, and how long it takes at that.
std::string pace_part(const RunStatus& status) {
  std::string text = part(status.tokens_per_s, status.pace_unit) + part(status.step_ms, "ms/step");
  if (status.evaluating_step)
    text += " · evaluating step " + std::to_string(*status.evaluating_step) + " beside";
  if (status.saving_step)
    text += " · saving step " + std::to_string(*status.saving_step) + " beside (" +
            std::to_string(std::lround(100 * status.saving_share.value_or(0))) + " %)";
  if (status.eta_s && *status.eta_s >= 0) text += " · " + duration(*status.eta_s) + " left";
  return text;
}

}  // namespace

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += row[i] + (i + 1 < row.size() ? std::string(widths[i] - width(row[i]) + 2, ' ') : "");
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text;
}

std::string for_output(const std::string& text, int fd) {
  return ::isatty(fd) == 1 ? printable(text) : text;
}

std::string rank_table(std::vector<std::vector<std::string>> rows) {
  if (rows.empty()) return "";
  rows.insert(rows.begin(), {"rank", "host", "pid", "step", "phase", "silent", "collective"});
  return table(rows);
}

std::string render_ranks(const std::vector<RankStatus>& ranks) {
  std::vector<std::vector<std::string>> rows;
  for (const RankStatus& rank : ranks) rows.push_back(rank_row(rank));
  return rank_table(std::move(rows));
}

std::string render_status(const RunStatus& status, const std::string& name) {
  std::string text;
  for (const std::string& note : status.notes) text += "! " + note + "\n";
  const std::string stalled = stalled_part(status.ranks);
  text += name + " · " + (stalled.empty() ? std::string(to_string(status.state)) : stalled) + " · step " +
          std::to_string(status.step) + (status.steps == 0 ? "" : " of " + std::to_string(status.steps)) +
          loss_part(status.loss, "loss") + loss_part(status.eval_loss, "eval") +
          loss_part(status.best_eval_loss, "best") + learning_rate(status.lr) +
          (stalled.empty() ? pace_part(status) : "");
  text += "\n" + render_ranks(status.ranks);
  if (const auto all = static_cast<std::size_t>(status.world_size);
      !status.ranks.empty() && all > status.ranks.size())
    text += "of " + std::to_string(all) + " ranks, the lowest and those that are silent\n";
  for (const OrderReport& order : status.orders)
    text += "order " + (order.id == 0 ? "-" : std::to_string(order.id)) + " " +
            std::string(to_string(order.state)) + (order.text.empty() ? "" : ": " + order.text) + "\n";
  return text;
}

}  // namespace footplate
