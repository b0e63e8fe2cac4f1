#include "console/doctor/trial_answers_json.h"

#include "protocol/messages/fields.h"

namespace footplate {

template <>
struct FieldsOf<LibrariesAnswer> {
  static void list(auto& field, auto& answer) {
    field("footplate", answer.footplate);
    field("libtorch", answer.libtorch);
    field("mpi", answer.mpi);
    field("libtorch_file", answer.libtorch_file);
    field("mpi_file", answer.mpi_file);
    field("host", answer.host);
    field("cores", answer.cores);
  }
};

template <>
struct FieldsOf<ProductsAnswer> {
  static void list(auto& field, auto& answer) {
    field("ratio", answer.ratio);
    field("openblas", answer.openblas);
    field("automatic", answer.automatic);
    field("missing", answer.missing);
  }
};

template <>
struct FieldsOf<LossAnswer> {
  static void list(auto& field, auto& answer) {
    field("survivors", answer.survivors);
    field("noticed_ms", answer.noticed_ms);
  }
};

template <>
struct FieldsOf<ReductionAnswer> {
  static void list(auto& field, auto& answer) {
    field("seconds", answer.seconds);
    field("elements", answer.elements);
    field("wrong", answer.wrong);
  }
};

template <>
struct FieldsOf<LinkAnswer> {
  static void list(auto& field, auto& answer) {
    field("gb_per_s", answer.gb_per_s);
    field("latency_us", answer.latency_us);
    field("hosts", answer.hosts);
  }
};

Result<void> read_json(const Json& json, LibrariesAnswer& answer) {
  answer.all = json;
  return read_fields(json, answer);
}
Result<void> read_json(const Json& json, ProductsAnswer& answer) {
  answer.all = json;
  return read_fields(json, answer);
}
Result<void> read_json(const Json& json, LossAnswer& answer) {
  answer.all = json;
  return read_fields(json, answer);
}
Result<void> read_json(const Json& json, ReductionAnswer& answer) {
  answer.all = json;
  return read_fields(json, answer);
}
Result<void> read_json(const Json& json, LinkAnswer& answer) {
  answer.all = json;
  return read_fields(json, answer);
}

}  // namespace footplate
