// docs/lua.md: each block of examples is run; in blocks marked `error` each line has to fail as it says.

#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "fake_console.h"

namespace footplate::test {
namespace {

struct Block {
  bool of_errors = false;
  int line = 0;
  std::string code;
};

std::vector<Block> blocks_of_page() {
  std::ifstream page(FOOTPLATE_LUA_PAGE);
  std::vector<Block> blocks;
  bool inside = false;
  int number = 0;
  for (std::string line; std::getline(page, line);) {
    ++number;
    if (!inside && line.starts_with("```lua")) {
      blocks.push_back({line == "```lua error", number, ""});
      inside = true;
    } else if (inside && line == "```") {
      inside = false;
    } else if (inside) {
      blocks.back().code += line + "\n";
    }
  }
  return blocks;
}

/// A console that knows enough for every example.
void prepare(FakeConsole& console) {
  console.status["ranks"] = {{{"rank", 0}, {"step", 812}, {"phase", "forward"}}};
  console.metrics = {{"train/loss", 2.5}, {"eval/loss", 2.25}};
}

/// The examples' lines one by one where they are expressions or statements of their own.
std::vector<std::string> lines_of(const std::string& code) {
  std::vector<std::string> lines;
  std::istringstream text(code);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

TEST(LuaPage, ExamplesRun) {
  int examples = 0;
  for (const Block& block : blocks_of_page()) {
    if (block.of_errors) continue;
    FakeConsole console;
    prepare(console);
    for (const std::string& line : lines_of(block.code)) {
      // A line with `local` needs the next one: they share a session only through globals.
      const std::string code = line.starts_with("local ") ? line.substr(6) : line;
      const auto outcome = console.run(code);
      EXPECT_FALSE(outcome.error) << "docs/lua.md, block at line " << block.line << ": " << line << "\n"
                                  << outcome.error->message;
      const std::size_t says = line.find("--> ");
      if (says != std::string::npos) {
        EXPECT_EQ(outcome.text, line.substr(says + 4)) << line;
      }
      ++examples;
    }
  }
  EXPECT_GT(examples, 30);
}

TEST(LuaPage, ErrorsSayWhatThePageSays) {
  int examples = 0;
  for (const Block& block : blocks_of_page()) {
    if (!block.of_errors) continue;
    for (const std::string& line : lines_of(block.code)) {
      FakeConsole console;
      const auto outcome = console.run(line);
      const std::size_t says = line.find("--> ");
      ASSERT_NE(says, std::string::npos) << line;
      ASSERT_TRUE(outcome.error) << line;
      EXPECT_THAT(outcome.error->message, testing::HasSubstr(line.substr(says + 4)));
      EXPECT_TRUE(console.orders.empty());
      ++examples;
    }
  }
  EXPECT_GT(examples, 10);
}

}  // namespace
}  // namespace footplate::test
