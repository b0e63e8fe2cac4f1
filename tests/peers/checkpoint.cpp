// How fast one rank saves and loads a checkpoint, beside a plain file of the same bytes. Arguments: what to
// do (save, load, write, read), a folder, millions of parameters. Prints a line of JSON.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checkpoint/disk.h"
#include "runtime/checkpoint/resume.h"
#include "runtime/checkpoint/saver.h"
#include "runtime/schema/schema_table.h"
#include "tests/peers/large_state.h"

namespace footplate {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr std::size_t kBlock = std::size_t{1} << 20;

/// The most memory that this process has had, in bytes.
std::size_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
  return 0;
}

[[noreturn]] void die(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(EXIT_FAILURE);
}

CheckpointSaver saver_in(const fs::path& folder, Disk& disk) {
  SaverOptions options;
  options.run_directory = folder;
  options.run_id = "bench";
  return CheckpointSaver(std::move(options), disk);
}

void save(const LargeState& state, const fs::path& folder) {
  PosixDisk disk;
  auto saver = saver_in(folder, disk);
  const Settings settings = Settings::defaults(runtime_schema());
  if (const auto saved = saver.save({1, "", state.table, settings, Json::object()}); !saved)
    die(saved.error().message);
}

void load(LargeState& state, const fs::path& folder) {
  PosixDisk disk;
  auto saver = saver_in(folder, disk);
  if (const auto loaded = saver.load(saver.newest(), state.table); !loaded) die(loaded.error().message);
}

/// As `dd conv=fsync` would.
void write_plain(const LargeState& state, const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  for (const auto& tensor : state.tensors) {
    const auto* bytes = reinterpret_cast<const char*>(tensor.data());
    for (std::size_t at = 0; at < tensor.size() * sizeof(float);) {
      const ssize_t written = ::write(descriptor, bytes + at, tensor.size() * sizeof(float) - at);
      if (written <= 0) die("can't write");
      at += static_cast<std::size_t>(written);
    }
  }
  if (::fsync(descriptor) != 0 || ::close(descriptor) != 0) die("can't sync");
}

void read_plain(LargeState& state, const fs::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  // From the device, as a checkpoint, which leaves the system's cache once it is written.
  static_cast<void>(::posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED));
  for (auto& tensor : state.tensors) {
    auto* bytes = reinterpret_cast<char*>(tensor.data());
    for (std::size_t at = 0; at < tensor.size() * sizeof(float);) {
      const ssize_t got =
          ::read(descriptor, bytes + at, std::min(kBlock, tensor.size() * sizeof(float) - at));
      if (got <= 0) die("can't read");
      at += static_cast<std::size_t>(got);
    }
  }
  ::close(descriptor);
}

int run(std::string_view what, const fs::path& folder, std::size_t millions) {
  LargeState state(millions);
  const fs::path plain = folder / "plain";
  const std::size_t before = peak_memory();
  const auto start = Clock::now();
  if (what == "save")
    save(state, folder);
  else if (what == "load")
    load(state, folder);
  else if (what == "write")
    write_plain(state, plain);
  else
    read_plain(state, plain);
  std::printf("{\"seconds\": %.4f, \"bytes\": %zu, \"more_memory\": %zu}\n",
              std::chrono::duration<double>(Clock::now() - start).count(), state.bytes,
              peak_memory() - before);
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace footplate

int main(int argc, char** argv) {
  if (argc < 4) return EXIT_FAILURE;
  return footplate::run(argv[1], argv[2], std::strtoull(argv[3], nullptr, 10));
}
