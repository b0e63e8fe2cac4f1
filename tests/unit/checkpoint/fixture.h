#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/checkpoint/checkpoint_reader.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/checkpoint/disk.h"
#include "runtime/checkpoint/shared_save.h"
#include "runtime/checkpoint/slices.h"

namespace footplate::test {

/// A folder that goes when the test ends. In memory where there is such a place: thousands of synced
/// saves take minutes on a disk.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    const std::filesystem::path place = memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string pattern = (place / "footplate-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

/// Two tensors whose content tells the step they were saved at.
struct SmallState {
  explicit SmallState(float step) : weights{step, step + 0.5f, -step, 1e-30f} {}
  std::vector<float> weights;
  std::vector<std::int64_t> counter{42};

  std::vector<TensorView> views() const {
    return {{"model/w", TensorType::float32, {2, 2}, std::as_bytes(std::span(weights))},
            {"optim/step", TensorType::int64, {}, std::as_bytes(std::span(counter))}};
  }
};

inline Manifest manifest_at(std::int64_t step, const std::string& tag = "") {
  Manifest manifest;
  manifest.run = "a1b2";
  manifest.step = step;
  manifest.world_size = 2;
  manifest.tag = tag;
  manifest.journal = 7;
  manifest.settings = {{"log.every", {{"value", 10}, {"source", "default"}}}};
  manifest.progress = {{"samples", step * 32}};
  manifest.metrics = {{"eval/loss", 2.25}};
  return manifest;
}

inline Result<Stored> save_step(CheckpointStore& store, std::int64_t step, std::size_t keep = 0,
                                const std::string& tag = "") {
  return store.save(manifest_at(step, tag), "rank-0.safetensors",
                    SmallState(static_cast<float>(step)).views(), {keep});
}

/// Three tensors, one of which is large enough to be cut.
struct LargeState {
  LargeState() : weights(3 * 200 * 1024), bias{1, 2, 3} {
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i);
  }
  std::vector<float> weights, bias;
  std::vector<std::int64_t> counter{42};

  std::vector<TensorView> views() const {
    return {{"model/b", TensorType::float32, {3}, std::as_bytes(std::span(bias))},
            {"model/w", TensorType::float32, {3, 200, 1024}, std::as_bytes(std::span(weights))},
            {"optim/step", TensorType::int64, {}, std::as_bytes(std::span(counter))}};
  }
};

/// Part `part` of `parts` of a state.
inline std::vector<TensorView> part_of(const std::vector<TensorView>& state, int part, int parts) {
  std::vector<TensorSpec> specs;
  for (const TensorView& view : state) specs.push_back({view.name, view.type, view.shape});
  std::vector<TensorView> views;
  for (const TensorSlice& slice : slices_of_part(specs, part, parts)) {
    TensorView view = state[slice.tensor];
    const std::size_t size = size_of(view.type);
    const auto bytes = static_cast<std::size_t>(slice.count) * size;
    if (bytes != view.bytes.size()) {
      view.slice_of = SliceOf{std::exchange(view.shape, {slice.count}), slice.first};
      view.bytes = view.bytes.subspan(static_cast<std::size_t>(slice.first) * size, bytes);
    }
    views.push_back(std::move(view));
  }
  return views;
}

/// What ranks do together: each of `stores` writes its part, the first one commits.
inline Result<Stored> save_parts(std::span<CheckpointStore* const> stores, Manifest manifest,
                                 const std::vector<TensorView>& state, Retention keep = {}) {
  const auto temporary = stores.front()->begin(manifest.step, manifest.tag);
  if (!temporary) return tl::unexpected(temporary.error());
  const int parts = static_cast<int>(stores.size());
  for (int part = 0; part < parts; ++part) {
    const auto file = stores[static_cast<std::size_t>(part)]->write_part(
        *temporary, manifest.step, file_of_rank(part), part_of(state, part, parts));
    if (!file) {
      stores.front()->abandon(*temporary);
      return tl::unexpected(file.error());
    }
    manifest.files.push_back(*file);
  }
  auto stored = stores.front()->commit(*temporary, std::move(manifest), keep);
  if (!stored) stores.front()->abandon(*temporary);
  return stored;
}

/// What a checkpoint holds: name to content.
using Contents = std::map<std::string, std::string>;

inline Result<Contents> load(const std::filesystem::path& folder) {
  const auto checkpoint = CheckpointReader::open(folder);
  if (!checkpoint) return tl::unexpected(checkpoint.error());
  Contents contents;
  for (const TensorSpec& spec : checkpoint->tensors())
    contents[spec.name].resize(bytes_of(spec.type, spec.shape).value());
  const auto read = checkpoint->read([&](const std::string& name, std::uint64_t at, auto block) {
    std::memcpy(contents.at(name).data() + at, block.data(), block.size());
  });
  return read.map([&] { return contents; });
}

inline Contents contents_of(std::span<const TensorView> views) {
  Contents contents;
  for (const TensorView& view : views)
    contents[view.name].assign(reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size());
  return contents;
}

/// Names of the entries of a folder, sorted.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace footplate::test
