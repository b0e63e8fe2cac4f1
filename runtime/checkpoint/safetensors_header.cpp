#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_set>

#include "protocol/json.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/checkpoint/slices.h"

namespace footplate {
namespace {

constexpr std::string_view kMetadata = "__metadata__";

/// Why a name is refused; empty if it isn't.
std::string bad_name(std::string_view name) {
  if (name.empty()) return "an empty name";
  if (name.size() > kMaxNameBytes) return "a name longer than " + std::to_string(kMaxNameBytes) + " bytes";
  // Names are shown on terminals: no escapes in them, and no end of string.
  if (std::any_of(name.begin(), name.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
    return "a control character in a name";
  return {};
}

/// Follows the header's JSON event by event and accepts exactly its grammar, so that nothing is built
/// that isn't allowed: no duplicate, no deeper level, no unknown field, no number but whole ones.
class HeaderReader : public nlohmann::json_sax<Json> {
 public:
  std::vector<TensorEntry> tensors;
  std::map<std::string, std::string> metadata;
  std::string error;

  bool null() override { return refuse("null where a value belongs"); }
  bool boolean(bool) override { return refuse("a boolean where a value belongs"); }
  bool number_integer(number_integer_t value) override {
    return refuse("negative number " + std::to_string(value));
  }
  bool number_float(number_float_t, const string_t& text) override {
    return refuse("number " + text + " is not a whole number of at most 64 bits");
  }
  bool binary(binary_t&) override { return refuse("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return refuse("extent " + std::to_string(value) + " is too large");
      if (tensor().spec.shape.size() == kMaxDimensions)
        return refuse("more than " + std::to_string(kMaxDimensions) + " dimensions");
      tensor().spec.shape.push_back(static_cast<std::int64_t>(value));
      return true;
    }
    if (place_ != Place::offsets) return refuse("a number where none belongs");
    if (offsets_ == 2) return refuse("data_offsets has to be two numbers, not more");
    (offsets_++ == 0 ? tensor().begin : tensor().end) = value;
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata && !key_.empty()) {
      metadata[key_] = value;
      key_.clear();
      return true;
    }
    if (place_ != Place::tensor || key_ != "dtype") return refuse("a string where none belongs");
    const auto type = tensor_type_from_string(value);
    if (!type) return refuse("unknown dtype '" + value.substr(0, 16) + "'");
    tensor().spec.type = *type;
    key_.clear();
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::outside) return enter(Place::root);
    if (place_ == Place::root) return enter(at_metadata_ ? Place::metadata : Place::tensor);
    return refuse("nested too deep");
  }

  bool key(string_t& value) override {
    if (place_ == Place::root) return root_key(value);
    if (place_ == Place::metadata) {
      if (metadata.contains(value)) return refuse("key '" + value + "' twice in __metadata__");
      key_ = value;
      // An empty key can't be told from none below; nobody needs one.
      return !value.empty() || refuse("an empty key in __metadata__");
    }
    if (value != "dtype" && value != "shape" && value != "data_offsets")
      return refuse("unknown field '" + value.substr(0, 32) + "'");
    if (!fields_.insert(value).second) return refuse("field '" + value + "' twice");
    key_ = value;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::root) return enter(Place::outside);
    if (place_ == Place::tensor)
      for (const char* field : {"dtype", "shape", "data_offsets"})
        if (!fields_.contains(field)) return refuse(std::string("no field '") + field + "'");
    return enter(Place::root);
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::tensor || key_ == "dtype" || key_.empty())
      return refuse("a list where none belongs");
    return enter(key_ == "shape" ? Place::shape : Place::offsets);
  }

  bool end_array() override {
    if (place_ == Place::offsets && offsets_ != 2) return refuse("data_offsets has to be two numbers");
    return enter(Place::tensor);
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    if (error.empty()) error = "the header isn't valid JSON at byte " + std::to_string(position);
    return false;
  }

 private:
  enum class Place { outside, root, metadata, tensor, shape, offsets };

  TensorEntry& tensor() { return tensors.back(); }

  bool enter(Place place) {
    place_ = place;
    key_.clear();
    return true;
  }

  bool root_key(const std::string& name) {
    at_metadata_ = name == kMetadata;
    if (const std::string reason = bad_name(name); !reason.empty()) return refuse(reason);
    if (!names_.insert(name).second) return refuse("tensor '" + name + "' twice");
    if (at_metadata_) return true;
    tensors.emplace_back();
    tensor().spec.name = name;
    fields_.clear();
    offsets_ = 0;
    return true;
  }

  bool refuse(const std::string& reason) {
    const bool in_tensor = place_ == Place::tensor || place_ == Place::shape || place_ == Place::offsets;
    error = (in_tensor ? "tensor '" + tensor().spec.name + "': " : std::string()) + reason;
    return false;
  }

  Place place_ = Place::outside;
  bool at_metadata_ = false;  ///< the root's last key was __metadata__
  std::string key_;           ///< whose value comes next
  std::size_t offsets_ = 0;   ///< numbers of data_offsets seen
  std::unordered_set<std::string> fields_;
  std::unordered_set<std::string> names_;
};

/// "tensor 'a': …" if the tensors don't cover the data exactly, each with the bytes its shape needs.
std::string check_layout(const std::vector<TensorEntry>& tensors, std::uint64_t data_bytes) {
  std::uint64_t covered = 0;
  for (const auto& entry : tensors) {
    const std::string where = "tensor '" + entry.spec.name + "': ";
    const std::string offsets = "[" + std::to_string(entry.begin) + ", " + std::to_string(entry.end) + ")";
    if (entry.end < entry.begin) return where + "reversed offsets " + offsets;
    if (entry.end > data_bytes)
      return where + "offsets " + offsets + " beyond the data's " + std::to_string(data_bytes) + " bytes";
    if (entry.begin < covered) return where + "offsets " + offsets + " overlap the tensor before";
    if (entry.begin > covered)
      return where + "a gap of " + std::to_string(entry.begin - covered) + " bytes before it";
    const auto bytes = bytes_of(entry.spec.type, entry.spec.shape);
    const std::string what = describe(entry.spec.type, entry.spec.shape);
    if (!bytes) return where + "the size of " + what + " overflows 64 bits";
    if (*bytes != entry.end - entry.begin)
      return where + what + " needs " + std::to_string(*bytes) + " bytes, its offsets " + offsets + " hold " +
             std::to_string(entry.end - entry.begin);
    covered = entry.end;
  }
  if (covered != data_bytes)
    return std::to_string(data_bytes - covered) + " trailing bytes that belong to no tensor";
  return {};
}

/// What only the text shows: the parser would skip a byte order mark and stop at a NUL.
std::string check_text(std::string_view text) {
  if (text.size() > kMaxHeaderBytes)
    return "a header of " + std::to_string(text.size()) + " bytes; at most " +
           std::to_string(kMaxHeaderBytes);
  if (text.empty() || text.front() != '{') return "the header doesn't start with '{'";
  if (text.find('\0') != std::string_view::npos) return "a NUL byte in the header";
  const auto last = text.find_last_not_of(' ');
  if (text[last] != '}') return "something other than spaces after the header's JSON";
  return {};
}

}  // namespace

Result<SafetensorsHeader> parse_safetensors_header(std::string_view text, std::uint64_t data_bytes) {
  if (const std::string reason = check_text(text); !reason.empty()) return fail(ErrorKind::failed, reason);
  HeaderReader reader;
  if (!Json::sax_parse(text.begin(), text.end(), &reader)) return fail(ErrorKind::failed, reader.error);
  SafetensorsHeader header{std::move(reader.tensors), std::move(reader.metadata), data_bytes};
  // Empty tensors share their offset with a neighbour and come before it.
  std::stable_sort(header.tensors.begin(), header.tensors.end(), [](const auto& a, const auto& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  if (const std::string reason = check_layout(header.tensors, data_bytes); !reason.empty())
    return fail(ErrorKind::failed, reason);
  if (auto read = read_slices(header); !read) return tl::unexpected(read.error());
  return header;
}

Result<std::string> safetensors_header(std::span<const TensorView> tensors,
                                       std::map<std::string, std::string> metadata) {
  Json header = Json::object();
  add_slices(tensors, metadata);
  if (!metadata.empty()) header[std::string(kMetadata)] = metadata;
  std::uint64_t offset = 0;
  for (const auto& tensor : tensors) {
    const auto bytes = bytes_of(tensor.type, tensor.shape);
    if (!bytes || *bytes != tensor.bytes.size())
      return fail(ErrorKind::failed, "tensor '" + tensor.name + "': " + describe(tensor.type, tensor.shape) +
                                         " doesn't fit its " + std::to_string(tensor.bytes.size()) +
                                         " bytes");
    if (header.contains(tensor.name)) return fail(ErrorKind::failed, "tensor '" + tensor.name + "' twice");
    const std::uint64_t end = offset + *bytes;
    header[tensor.name] = {
        {"dtype", to_string(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.append((8 - text.size() % 8) % 8, ' ');
  // The reader is the judge of names, dimensions and length.
  if (auto readable = parse_safetensors_header(text, offset); !readable)
    return tl::unexpected(readable.error());
  std::string start(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) start[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  return start + text;
}

}  // namespace footplate
