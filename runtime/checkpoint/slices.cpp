#include "runtime/checkpoint/slices.h"

#include <algorithm>
#include <utility>

#include "protocol/json.h"

namespace footplate {
namespace {

constexpr const char* kSlices = "footplate.slices";
constexpr std::uint64_t kNeverCut = std::uint64_t{1} << 20;

std::uint64_t bytes_of(const TensorSpec& spec) {
  return bytes_of(spec.type, spec.shape).value_or(0);
}

std::int64_t elements_of(const TensorSpec& spec) {
  return static_cast<std::int64_t>(bytes_of(spec) / size_of(spec.type));
}

/// A tensor, and how many of its elements come before a cut there.
using Place = std::pair<std::size_t, std::int64_t>;

Place cut_at(std::span<const TensorSpec> tensors, std::uint64_t byte) {
  std::uint64_t begin = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::uint64_t bytes = bytes_of(tensors[i]);
    if (byte < begin + bytes)
      return {i,
              bytes < kNeverCut ? 0 : static_cast<std::int64_t>((byte - begin) / size_of(tensors[i].type))};
    begin += bytes;
  }
  return {tensors.size(), 0};
}

bool is_name(const Json& json) {
  return json.is_string() && !json.get_ref<const std::string&>().empty() &&
         json.get_ref<const std::string&>().size() <= kMaxNameBytes;
}

/// "tensor 'a': …" where the text can't be what add_slices() wrote of this entry.
std::string take_slice(const Json& json, TensorEntry& entry) {
  const std::string where = "tensor '" + entry.spec.name + "': ";
  const bool is_named = json.is_object() && json.contains("of");
  if (!json.is_object() || json.size() != (is_named ? 3U : 2U) || !json.contains("shape") ||
      !json.contains("first") || !json["shape"].is_array() || !json["first"].is_number_unsigned() ||
      json["shape"].size() > kMaxDimensions || (is_named && !is_name(json["of"])))
    return where + "what it is a slice of can't be read";
  SliceOf whole;
  if (is_named) whole.name = json["of"].get<std::string>();
  for (const Json& extent : json["shape"]) {
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > INT64_MAX)
      return where + "the shape that it is a slice of can't be read";
    whole.shape.push_back(extent.get<std::int64_t>());
  }
  const auto bytes = bytes_of(entry.spec.type, whole.shape);
  if (!bytes) return where + "the size of " + describe(entry.spec.type, whole.shape) + " overflows 64 bits";
  const std::uint64_t elements = *bytes / size_of(entry.spec.type);
  const auto first = json["first"].get<std::uint64_t>();
  const auto count = static_cast<std::uint64_t>(elements_of(entry.spec));
  if (entry.spec.shape.size() != 1) return where + "a slice has one dimension";
  if (first > elements || count > elements - first)
    return where + "elements " + std::to_string(first) + " to " + std::to_string(first + count) + " of " +
           describe(entry.spec.type, whole.shape);
  whole.first = static_cast<std::int64_t>(first);
  entry.slice_of = std::move(whole);
  return {};
}

}  // namespace

std::vector<TensorSlice> slices_of_part(std::span<const TensorSpec> tensors, int part, int parts) {
  std::uint64_t total = 0;
  for (const TensorSpec& spec : tensors) total += bytes_of(spec);
  const auto cut = [&](int before) {
    if (before == 0) return Place{0, 0};
    if (before == parts) return Place{tensors.size(), 0};
    const auto n = static_cast<std::uint64_t>(parts);
    const auto i = static_cast<std::uint64_t>(before);
    return cut_at(tensors, total / n * i + total % n * i / n);
  };
  const Place from = cut(part);
  const Place to = cut(part + 1);
  std::vector<TensorSlice> slices;
  for (std::size_t i = from.first; i < tensors.size() && i <= to.first; ++i) {
    const std::int64_t first = i == from.first ? from.second : 0;
    const std::int64_t end = i == to.first ? to.second : elements_of(tensors[i]);
    // A tensor without elements is whole where its neighbour before it is.
    if (first < end || (end == 0 && i < to.first)) slices.push_back({i, first, end - first});
  }
  return slices;
}

void add_slices(std::span<const TensorView> tensors, std::map<std::string, std::string>& metadata) {
  Json slices = Json::object();
  for (const TensorView& tensor : tensors)
    if (const auto& whole = tensor.slice_of) {
      slices[tensor.name] = {{"shape", whole->shape}, {"first", whole->first}};
      if (!whole->name.empty()) slices[tensor.name]["of"] = whole->name;
    }
  if (!slices.empty()) metadata[kSlices] = slices.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<void> read_slices(SafetensorsHeader& header) {
  const auto text = header.metadata.find(kSlices);
  if (text == header.metadata.end()) return {};
  const Json slices = Json::parse(text->second, nullptr, /*allow_exceptions=*/false);
  if (!slices.is_object()) return fail(ErrorKind::failed, std::string(kSlices) + " is not a JSON object");
  std::size_t found = 0;
  for (TensorEntry& entry : header.tensors) {
    const auto slice = slices.find(entry.spec.name);
    if (slice == slices.end()) continue;
    if (const std::string reason = take_slice(*slice, entry); !reason.empty())
      return fail(ErrorKind::failed, reason);
    ++found;
  }
  if (found != slices.size())
    return fail(ErrorKind::failed, std::string(kSlices) + " names a tensor that the file doesn't hold");
  return {};
}

}  // namespace footplate
