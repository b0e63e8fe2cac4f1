#include "runtime/data/wav.h"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "runtime/data/mapped_file.h"

namespace footplate {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little,
              "WAV files are little-endian, and read as they are");

constexpr std::size_t kRiffBytes = 12;    ///< "RIFF", the size of the rest, "WAVE"
constexpr std::size_t kChunkBytes = 8;    ///< a chunk's name and size
constexpr std::size_t kFormatBytes = 16;  ///< of a chunk "fmt " at least
constexpr int kPcm = 1, kFloat = 3;       ///< WAVE_FORMAT_…
constexpr const char* kAllowed = "what can be read is a WAV file of one channel of 16-bit PCM";

using FileBytes = std::span<const std::uint8_t>;

template <class T>
T number_at(FileBytes bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view word_at(FileBytes bytes, std::size_t at) {
  return {reinterpret_cast<const char*>(bytes.data()) + at, 4};
}

/// What is wrong with a file; thrown within this file.
struct Damaged {
  std::string what;
};

/// The content of the first chunk of that name.
FileBytes chunk(FileBytes file, std::string_view name) {
  for (std::size_t at = kRiffBytes; at + kChunkBytes <= file.size();) {
    const std::size_t size = number_at<std::uint32_t>(file, at + 4);
    const std::size_t left = file.size() - at - kChunkBytes;
    if (size > left)
      throw Damaged{fmt::format("is cut short, or its header is damaged: of {} bytes of a chunk {} are there",
                                size, left)};
    if (word_at(file, at) == name) return file.subspan(at + kChunkBytes, size);
    at += kChunkBytes + size + size % 2;
  }
  throw Damaged{fmt::format("has no chunk '{}': it is cut short, or its header is damaged", name)};
}

/// The rate, of a format that can be read.
std::int64_t checked_rate(FileBytes format) {
  if (format.size() < kFormatBytes)
    throw Damaged{fmt::format("has a damaged header: its chunk 'fmt ' has {} bytes", format.size())};
  const int code = number_at<std::uint16_t>(format, 0), channels = number_at<std::uint16_t>(format, 2),
            bits = number_at<std::uint16_t>(format, 14);
  if (code == kFloat) throw Damaged{"has samples of floating point"};
  if (code != kPcm) throw Damaged{fmt::format("has the format {}, which isn't plain PCM (1)", code)};
  if (channels != 1) throw Damaged{fmt::format("has {} channels", channels)};
  if (bits != 16) throw Damaged{fmt::format("has samples of {} bits", bits)};
  const std::int64_t rate = number_at<std::uint32_t>(format, 4);
  if (rate == 0) throw Damaged{"has a damaged header: its rate is 0"};
  return rate;
}

Wav parsed(FileBytes file) {
  if (file.size() < kRiffBytes || word_at(file, 0) != "RIFF" || word_at(file, 8) != "WAVE")
    throw Damaged{"isn't a WAV file: it doesn't begin with RIFF … WAVE"};
  Wav wav{.rate = checked_rate(chunk(file, "fmt ")), .samples = {}};
  const FileBytes data = chunk(file, "data");
  if (data.empty()) throw Damaged{"has no samples"};
  if (data.size() % sizeof(std::int16_t) != 0)
    throw Damaged{fmt::format("is damaged: {} bytes aren't whole samples of 16 bits", data.size())};
  wav.samples.resize(data.size() / sizeof(std::int16_t));
  std::memcpy(wav.samples.data(), data.data(), data.size());
  return wav;
}

/// The 44 bytes before the samples.
std::string header_of(std::size_t bytes, std::int64_t rate) {
  std::string header;
  const auto put = [&](auto value) { header.append(reinterpret_cast<const char*>(&value), sizeof value); };
  const auto size = static_cast<std::uint32_t>(bytes), a_second = static_cast<std::uint32_t>(rate);
  header += "RIFF";
  put(static_cast<std::uint32_t>(size + kRiffBytes + 2 * kChunkBytes + kFormatBytes - kChunkBytes));
  header += "WAVEfmt ";
  put(std::uint32_t{kFormatBytes});
  put(std::uint16_t{kPcm});
  put(std::uint16_t{1});  // channels
  put(a_second);
  put(static_cast<std::uint32_t>(a_second * sizeof(std::int16_t)));
  put(std::uint16_t{sizeof(std::int16_t)});
  put(std::uint16_t{16});  // bits
  header += "data";
  put(size);
  return header;
}

}  // namespace

Result<Wav> read_wav(const fs::path& path) {
  const auto file = MappedFile::open(path);
  if (!file) return fail(ErrorKind::usage, file.error().message);
  try {
    return parsed(file->bytes());
  } catch (const Damaged& damaged) {
    return fail(ErrorKind::usage, fmt::format("{} {}; {}", path.string(), damaged.what, kAllowed));
  }
}

Result<void> write_wav(const fs::path& path, std::span<const std::int16_t> samples, std::int64_t rate) {
  const fs::path temporary = path.string() + ".tmp";
  const auto cant = [&](int cause) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    return fail(ErrorKind::failed, fmt::format("can't write {}: {}", path.string(), std::strerror(cause)));
  };
  std::unique_ptr<FILE, int (*)(FILE*)> out(std::fopen(temporary.c_str(), "wbe"), std::fclose);
  if (out == nullptr) return cant(errno);
  const std::string header = header_of(samples.size_bytes(), rate);
  if (std::fwrite(header.data(), 1, header.size(), out.get()) != header.size() ||
      std::fwrite(samples.data(), 1, samples.size_bytes(), out.get()) != samples.size_bytes() ||
      std::fclose(out.release()) != 0)
    return cant(errno);
  std::error_code error;
  fs::rename(temporary, path, error);
  return error ? cant(error.value()) : Result<void>();
}

}  // namespace footplate
