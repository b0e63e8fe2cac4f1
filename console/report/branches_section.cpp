#include <algorithm>
#include <cmath>

#include "console/client/render/render.h"
#include "console/report/html.h"
#include "console/report/sections.h"

namespace footplate::report {
namespace {

constexpr std::size_t kMostMoves = 8;  ///< of a branch, in the table

bool is_computed(const Schema& schema, const std::string& setting) {
  const SettingSpec* spec = schema.setting(setting);
  return spec != nullptr && !spec->knobs.empty();
}

/// "sched.base_lr 0.003 → 0.01; step 240: optim.lr_scale 1 → 0.5"
std::string moves_text(const Branch& branch, const Schema& schema) {
  std::vector<std::string> texts;
  std::int64_t step = -1;
  for (const SettingMove& move : branch.moves) {
    if (is_computed(schema, move.name)) continue;
    const bool new_step = move.step != step;
    step = move.step;
    texts.push_back((new_step && step >= 0 ? "step " + std::to_string(step) + ": " : "") + shown(move));
  }
  const std::size_t more = texts.size() - std::min(texts.size(), kMostMoves);
  texts.resize(texts.size() - more);
  return join(texts, "; ") + (more > 0 ? "; and " + std::to_string(more) + " more" : "");
}

std::string steps_text(const Branch& branch) {
  return std::to_string(branch.first_step) + " to " + rounded(branch.last_step, 15);
}

double least_of(const std::vector<RunHistory>& runs, double Branch::*loss) {
  double least = kNever;
  for (const RunHistory& run : runs)
    for (const Branch& branch : run.branches)
      if (branch.*loss < least) least = branch.*loss;  // false for NaN
  return least;
}

}  // namespace

std::vector<BranchView> branch_views(const std::vector<RunHistory>& runs) {
  std::vector<BranchView> views;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> names;
    const auto take = [&](const std::string& name) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    for (const Branch& branch : runs[i].branches) take(branch.name);
    for (const Stretch& stretch : runs[i].stretches) take(stretch.branch);
    if (names.empty()) names.emplace_back();
    for (const std::string& name : names) {
      const std::string run = runs[i].record.name();
      const std::string label = runs.size() == 1 ? name : names.size() == 1 ? run : run + " · " + name;
      views.push_back({i, name, label, views.size()});
    }
  }
  return views;
}

std::size_t color_of_run(const std::vector<BranchView>& views, std::size_t run) {
  std::size_t color = 0;
  for (const BranchView& view : views)
    if (view.run == run) color = view.color;
  return color;
}

std::string branches_section(const std::vector<RunHistory>& runs, const std::vector<BranchView>& views,
                             const Schema& schema) {
  if (std::none_of(runs.begin(), runs.end(), [](const RunHistory& run) { return run.branches.size() > 1; }))
    return "";
  std::vector<std::string> columns = {"branch",      "from",       "#steps",     "what was changed",
                                      "#train loss", "#eval loss", "#best eval", "state"};
  if (runs.size() > 1) columns.insert(columns.begin(), "run");
  Table table(columns);
  const double train = least_of(runs, &Branch::train_loss), eval = least_of(runs, &Branch::eval_loss),
               best = least_of(runs, &Branch::best_loss);
  const auto loss_cell = [](double loss, double least) {
    return cell(four_digits(loss), loss == least ? "n best" : "n");
  };
  for (const BranchView& view : views) {
    const RunHistory& run = runs[view.run];
    const auto branch = std::find_if(run.branches.begin(), run.branches.end(),
                                     [&](const Branch& one) { return one.name == view.name; });
    if (branch == run.branches.end()) continue;
    const std::string changed = moves_text(*branch, schema);
    table.row((runs.size() > 1 ? cell(run.record.name()) : "") + colored_cell(view.name, view.color) +
              cell(branch->parent.empty() ? "" : branch->parent + " @" + std::to_string(branch->first_step)) +
              cell(steps_text(*branch), "n") + cell(changed.empty() ? "nothing" : changed, "long") +
              loss_cell(branch->train_loss, train) + loss_cell(branch->eval_loss, eval) +
              loss_cell(branch->best_loss, best) +
              cell(branch->left_at < kNever ? "left" : "newest", "quiet"));
  }
  return heading("Branches") +
         paragraph(
             "A branch begins where ckpt.load went back to a checkpoint. Train loss: the mean of its last " +
                 std::to_string(Series::kRecent) +
                 " lines. Eval loss: its last whole evaluation. Bold: the "
                 "lowest of the column.",
             "quiet") +
         table.html("starts.jsonl");
}

}  // namespace footplate::report
