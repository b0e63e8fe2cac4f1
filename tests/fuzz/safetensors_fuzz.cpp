// Headers of tensor files. The input is a file; the first byte says whether its data is as long as the
// file says or as long as the header needs, so that both the refusals and what lies behind them are met.
#include <algorithm>
#include <cstring>

#include "require.h"
#include "runtime/checkpoint/safetensors.h"

namespace {

using namespace footplate;

void check(std::string_view text, std::uint64_t data_bytes) {
  const auto header = parse_safetensors_header(text, data_bytes);
  if (!header) {
    require(!header.error().message.empty(), "a refusal has a reason");
    require(header.error().message.size() < 8192, "of bounded length");
    return;
  }
  std::uint64_t covered = 0;
  for (const auto& entry : header->tensors) {
    require(entry.begin == covered && entry.end >= entry.begin, "tensors follow each other");
    require(bytes_of(entry.spec.type, entry.spec.shape) == entry.end - entry.begin, "each has its size");
    covered = entry.end;
  }
  require(covered == data_bytes, "and together they are the data");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 9) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  std::uint64_t number = 0;
  std::memcpy(&number, data + 1, 8);
  if (data[0] % 2 == 0) {
    const std::size_t length = static_cast<std::size_t>(std::min<std::uint64_t>(number, size - 9));
    check(text.substr(8, length), size - 9 - length);
  } else {
    check(text.substr(8), number);
  }
  return 0;
}
