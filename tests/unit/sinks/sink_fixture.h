#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "console/sinks/sink.h"

namespace footplate::sinks {

/// A folder of its own, and rows as a run logs them.
class SinkTest : public ::testing::Test {
 protected:
  SinkTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sink-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
  }
  ~SinkTest() override { std::filesystem::remove_all(folder); }

  static MetricsRow row(std::int64_t step, double loss, int start = 1, const std::string& branch = "main") {
    return {1795575929.5 + static_cast<double>(step), start, branch, step, {{"train/loss", loss}}};
  }
  static std::string contents(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::filesystem::path folder;
};

}  // namespace footplate::sinks
