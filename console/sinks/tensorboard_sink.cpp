#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <utility>

#include "console/sinks/sink.h"

// TensorBoard's event files: protocol buffers in records with checksums. One folder for each branch, and one
// file in it for each start of the run: TensorBoard loses what is appended behind a record that was torn.

namespace footplate::sinks {
namespace {

/// CRC-32C, bit by bit from a table (RFC 3720, B.4).
std::uint32_t crc32c(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> kTable = [] {
    constexpr std::uint32_t kPolynomial = 0x82F63B78;
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < table.size(); ++i) {
      table[i] = i;
      for (int bit = 0; bit < 8; ++bit) table[i] = (table[i] >> 1) ^ ((table[i] & 1) != 0 ? kPolynomial : 0);
    }
    return table;
  }();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : bytes) crc = kTable[(crc ^ static_cast<std::uint8_t>(byte)) & 0xFF] ^ (crc >> 8);
  return ~crc;
}

template <class T>
std::string little_endian(T value) {
  static_assert(std::endian::native == std::endian::little);
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// A record: its length, the length's checksum, the bytes, their checksum. Checksums are masked, as those of
/// data that holds checksums itself would be weak.
std::string record(const std::string& bytes) {
  const auto masked = [](std::string_view data) {
    const std::uint32_t crc = crc32c(data);
    return little_endian(((crc >> 15) | (crc << 17)) + std::uint32_t{0xA282EAD8});
  };
  const std::string length = little_endian(static_cast<std::uint64_t>(bytes.size()));
  return length + masked(length) + bytes + masked(bytes);
}

// Fields of protocol buffers, by number.
enum Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

std::string number(std::uint64_t value) {
  std::string text;
  for (; value >= 0x80; value >>= 7) text.push_back(static_cast<char>(value | 0x80));
  text.push_back(static_cast<char>(value));
  return text;
}
std::string key(int field, Wire wire) {
  return number(static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(wire));
}
std::string text_field(int field, std::string_view text) {
  return key(field, Wire::bytes) + number(text.size()) + std::string(text);
}

/// tensorflow.Event: wall_time 1, step 2, file_version 3, summary 5, session_log 7.
std::string event(double time, std::int64_t step, const std::string& rest) {
  return key(1, Wire::fixed64) + little_endian(time) + key(2, Wire::varint) +
         number(static_cast<std::uint64_t>(step)) + rest;
}

/// tensorflow.Summary.Value: tag 1, simple_value 2.
std::string scalar(const std::string& name, double value) {
  return text_field(1,
                    text_field(1, name) + key(2, Wire::fixed32) + little_endian(static_cast<float>(value)));
}

/// tensorflow.SessionLog with status START: what was at this step and later is of an earlier start, and left
/// out.
std::string session_start() {
  return text_field(7, key(1, Wire::varint) + number(1));
}

class TensorboardSink final : public Sink {
 public:
  explicit TensorboardSink(std::filesystem::path folder) : folder_(std::move(folder)) {}

  Result<void> write(const MetricsRow& row) override {
    auto file = file_of(row);
    if (!file) return tl::unexpected(file.error());
    std::string values;
    for (const auto& [name, value] : row.values) values += scalar(name, value);
    **file << record(event(row.time, row.step, text_field(5, values)));
    return {};
  }

  Result<void> flush() override {
    if (!lost_.empty()) return fail(ErrorKind::failed, "can't write " + std::exchange(lost_, "").string());
    if (file_.is_open() && !file_.flush())
      return fail(ErrorKind::failed, "can't write below " + folder_.string());
    return {};
  }

 private:
  /// Another file for each start, and where a start goes back in place. One of them is open at a time.
  Result<std::ofstream*> file_of(const MetricsRow& row) {
    const std::string branch = row.branch.empty() ? "main" : row.branch;
    const auto path = folder_ / branch / file_name(row);
    if (path == path_) return &file_;
    close();
    std::error_code error;
    std::filesystem::create_directories(folder_ / branch, error);
    const bool is_new = begun_.insert(path).second;
    file_.open(path, std::ios::binary | (is_new ? std::ios::trunc : std::ios::app));
    if (!file_) return fail(ErrorKind::failed, "can't write " + path.string() + ": " + std::strerror(errno));
    path_ = path;
    if (is_new)
      file_ << record(event(row.time, 0, text_field(3, "brain.Event:2")))
            << record(event(row.time, row.step, session_start()));
    return &file_;
  }

  /// What the disk didn't take of this file is told at the next flush.
  void close() {
    if (!file_.is_open()) return;
    file_.close();
    if (!file_ && lost_.empty()) lost_ = path_;
    file_.clear();
  }

  /// TensorBoard reads files in the order of their names.
  static std::string file_name(const MetricsRow& row) {
    std::array<char, 80> name{};
    std::snprintf(name.data(), name.size(), "events.out.tfevents.%010d.footplate", row.start);
    std::string text = name.data();
    if (row.went_back > 0) {
      std::snprintf(name.data(), name.size(), ".%06d", row.went_back);
      text += name.data();
    }
    return text;
  }

  std::filesystem::path folder_;
  std::filesystem::path path_;  ///< of the file that is open
  std::filesystem::path lost_;  ///< a file that couldn't be written, until flush() has told so
  std::ofstream file_;
  std::set<std::filesystem::path> begun_;
};

}  // namespace

Result<std::unique_ptr<Sink>> open_tensorboard(const SinkTarget& target) {
  return std::make_unique<TensorboardSink>(target.out);
}

}  // namespace footplate::sinks
