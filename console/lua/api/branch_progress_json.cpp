#include "console/lua/api/branch_progress.h"
#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<lua::BranchResult> {
  static void list(auto& field, auto& result) {
    field("branch", result.branch);
    field("set", result.set);
    field("step", result.step);
    field("metric", result.metric);
    field("value", result.value);
    field("checkpoint", result.checkpoint);
    field("kept", result.kept);
  }
};

template <>
struct FieldsOf<lua::BranchProgress> {
  static void list(auto& field, auto& progress) {
    field("of", progress.of);
    field("from", progress.from);
    field("step", progress.step);
    field("at", progress.at);
    field("left", progress.left);
    field("done", progress.done);
    field("results", progress.results);
  }
};

}  // namespace footplate

namespace footplate::lua {

Json to_json(const BranchResult& result) {
  return write_fields(result);
}

Json to_json(const BranchProgress& progress) {
  return write_fields(progress);
}

std::optional<BranchProgress> branch_progress_from(const Json& store, const std::string& name) {
  const auto found = store.find(name);
  if (found == store.end()) return std::nullopt;
  return read_tolerantly<BranchProgress>(*found);
}

}  // namespace footplate::lua
