// Stands in for footplate-console: writes what it is told to RUN/fake-N.jsonl (N counts the starts) and
// does what RUN/fake.plan says, one word: `order` sends an order after the hello, `die` ends after the
// hello, `junk` sends something that isn't JSON, `deaf` never reads again after the hello.

#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "protocol/frame.h"

namespace {

constexpr int kFd = 3;

std::string open_descriptors() {
  std::string list;
  DIR* folder = ::opendir("/proc/self/fd");
  while (const dirent* entry = ::readdir(folder))
    if (entry->d_name[0] != '.' && std::stoi(entry->d_name) != ::dirfd(folder))
      list += std::string(entry->d_name) + " ";
  ::closedir(folder);
  return list;
}

bool send_text(const std::string& text) {
  return ::send(kFd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

}  // namespace

int main(int, char** argv) {
  const std::string descriptors = open_descriptors();
  const std::filesystem::path run(argv[2]);
  int number = 1;
  while (std::filesystem::exists(run / ("fake-" + std::to_string(number) + ".jsonl"))) ++number;
  std::ofstream told(run / ("fake-" + std::to_string(number) + ".jsonl"));
  const char* part = std::getenv("FOOTPLATE_PART");
  told << footplate::to_line({{"type", "started"},
                              {"fds", descriptors},
                              {"session", ::getsid(0)},
                              {"group", ::getpgid(0)},
                              {"pid", ::getpid()},
                              {"part", part != nullptr ? part : ""}})
       << std::flush;
  std::string plan;
  std::ifstream(run / "fake.plan") >> plan;
  std::cerr << "fake console " << number << "\n";

  footplate::LineReader reader;
  char bytes[4096];
  for (;;) {
    const ssize_t got = ::recv(kFd, bytes, sizeof bytes, 0);
    if (got <= 0) return 0;
    reader.append({bytes, static_cast<std::size_t>(got)});
    while (auto line = reader.next().value()) {
      const auto json = footplate::parse_line(*line).value();
      told << *line << "\n" << std::flush;
      const std::string type = json["type"];
      if (type == "end") return 0;
      if (type != "hello") continue;
      if (plan == "die") return 0;
      if (plan == "junk") send_text("hello?\n");
      if (plan == "deaf") {
        pollfd closed{kFd, POLLRDHUP, 0};
        ::poll(&closed, 1, -1);
        return 0;
      }
      if (plan == "order")
        send_text(R"({"type":"order","ref":"f1","order":{"changes":[{"name":"log.every","value":3}],)"
                  R"("calls":[{"action":"eval.now"}]}})"
                  "\n");
    }
  }
}
