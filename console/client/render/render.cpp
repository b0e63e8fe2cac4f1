#include "console/client/render/render.h"

#include <unistd.h>

#include <cmath>

#include "console/client/render/text.h"
#include "console/client/runs/run_record.h"

namespace footplate {
namespace {

/// Bytes that start a character, so that UTF-8 aligns.
std::size_t width(const std::string& text) {
  std::size_t count = 0;
  for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return count;
}

std::string whole(double value) {
  return std::isnan(value) ? "-" : std::to_string(static_cast<long long>(value));
}

/// " · 12.5 ms/step", or nothing where the status lacks it.
std::string part(const Json& status, const char* field, const char* unit) {
  const double value = number_of(status, field);
  return std::isnan(value) ? "" : " · " + rounded(value) + " " + unit;
}

/// " · loss 2.3149", or nothing where the status lacks it.
std::string loss_part(const Json& status, const char* field, const char* label) {
  const auto value = status.contains(field) ? number_from_json(status[field]) : std::nullopt;
  return value ? std::string(" · ") + label + " " + loss_text(*value) : "";
}

std::string learning_rate(const Json& status) {
  const double value = number_of(status, "lr");
  return std::isnan(value) ? "" : " · lr " + rounded(value);
}

std::string collective_text(const Json& rank) {
  const auto found = rank.find("collective");
  if (found == rank.end() || !found->is_object() || found->empty()) return "";
  const Json& collective = *found;
  if (!flag_of(collective, "running")) return "";
  return text_of(collective, "kind") + " #" + whole(number_of(collective, "sequence")) + ", " +
         whole(number_of(collective, "elements")) + " elements, " +
         rounded(number_of(collective, "age_s"), 2) + " s";
}

Json list_of(const Json& object, const char* field) {
  return object.contains(field) && object[field].is_array() ? object[field] : Json::array();
}

std::vector<std::string> rank_row(const Json& rank) {
  const double silent = number_of(rank, "silent_s");
  const double phase = number_of(rank, "phase_s");
  return {whole(number_of(rank, "rank")) + (flag_of(rank, "stalled") ? " !" : ""),
          text_of(rank, "host"),
          whole(number_of(rank, "pid")),
          whole(number_of(rank, "step")),
          text_of(rank, "phase") + (std::isnan(phase) ? "" : " " + rounded(phase, 2) + " s"),
          std::isnan(silent) ? "-" : rounded(silent, 2) + " s",
          collective_text(rank)};
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

std::string render_ranks(const Json& ranks) {
  std::vector<std::vector<std::string>> rows{
      {"rank", "host", "pid", "step", "phase", "silent", "collective"}};
  for (const auto& rank : ranks)
    if (rank.is_object()) rows.push_back(rank_row(rank));
  return rows.size() > 1 ? table(rows) : "";
}

std::string render_status(const Json& status, const std::string& name) {
  std::string text;
  for (const auto& note : list_of(status, "notes"))
    if (note.is_string()) text += "! " + note.get<std::string>() + "\n";
  const double steps = number_of(status, "steps");
  text += name + " · " + text_of(status, "state") + " · step " + whole(number_of(status, "step")) +
          (std::isnan(steps) ? "" : " of " + whole(steps)) + loss_part(status, "loss", "loss") +
          loss_part(status, "eval_loss", "eval") + loss_part(status, "best_eval_loss", "best") +
          learning_rate(status) + part(status, "tokens_per_s", "tokens/s") +
          part(status, "step_ms", "ms/step");
  if (const double step = number_of(status, "evaluating_step"); !std::isnan(step))
    text += " · evaluating step " + whole(step) + " beside";
  if (const double eta = number_of(status, "eta_s"); eta >= 0) text += " · " + duration(eta) + " left";
  text += "\n";
  text += render_ranks(list_of(status, "ranks"));
  for (const auto& order : list_of(status, "orders"))
    if (order.is_object())
      text += "order " + whole(number_of(order, "id")) + " " + text_of(order, "state") +
              (text_of(order, "text").empty() ? "" : ": " + text_of(order, "text")) + "\n";
  return text;
}

}  // namespace footplate
