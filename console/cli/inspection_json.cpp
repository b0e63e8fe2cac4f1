#include "console/cli/inspection_json.h"

#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<ListedCheckpoint> {
  static void list(auto& field, auto& one) {
    field("path", one.path);
    field("error", one.error);
    field("step", one.step);
    field("tag", one.tag);
    field("best", one.best);
    field("verified", one.verified);
    field("created", one.created);
    field("bytes", one.bytes);
    field("metrics", one.metrics);
  }
};

template <>
struct FieldsOf<InspectedRun> {
  static void list(auto& field, auto& run) {
    field("run", run.run);
    field("checkpoints", run.checkpoints);
    field("best_evaluation", run.best_evaluation);
  }
};

template <>
struct FieldsOf<InspectedTensor> {
  static void list(auto& field, auto& tensor) {
    field("name", tensor.name);
    field("type", tensor.type);
    field("shape", tensor.shape);
    field("bytes", tensor.bytes);
    field("file", tensor.file);
  }
};

template <>
struct FieldsOf<InspectedCheckpoint> {
  static void list(auto& field, auto& found) {
    field("path", found.path);
    field("bytes", found.bytes);
    field("verified", found.verified);
    field("manifest", found.manifest);
    field("tensors", found.tensors);
  }
};

template <>
struct FieldsOf<InspectionError> {
  static void list(auto& field, auto& error) { field("error", error.text); }
};

namespace {

template <class T>
Result<Inspection> inspection_as(const Json& json) {
  T found;
  if (auto read = read_fields(json, found); !read) return tl::unexpected(read.error());
  return Inspection(std::move(found));
}

}  // namespace

Result<Inspection> inspection_from_json(const Json& json) {
  if (json.contains("error")) return inspection_as<InspectionError>(json);
  return json.contains("checkpoints") ? inspection_as<InspectedRun>(json)
                                      : inspection_as<InspectedCheckpoint>(json);
}

}  // namespace footplate
