#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "protocol/frame.h"

namespace footplate::test {

/// A client of the console, blocking, with a bound on every wait.
class TestClient {
 public:
  /// Connects, trying for five seconds, and reads the hello.
  explicit TestClient(const std::filesystem::path& socket);
  ~TestClient();
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  const Json& hello() const { return hello_; }
  int fd() const { return fd_; }
  void send_text(const std::string& text);

  /// Sends without waiting; the request's id.
  int send(Json request);

  /// The next line; null where none came in time, or the connection ended.
  Json read(double seconds = 10);

  /// The answer to request `id`; other lines are kept in `others`.
  Json answer(int id, double seconds = 10);
  Json ask(Json request) { return answer(send(std::move(request))); }
  Json eval(const std::string& code) { return ask({{"op", "eval"}, {"code", code}}); }

  /// Text of the value, or the message of the error.
  std::string run(const std::string& code);

  /// Reads until an output has `part`; whether it came.
  bool hears(const std::string& part);

  std::vector<Json> others;  ///< output and events that came while an answer was waited for
  void close();

 private:
  int fd_ = -1;
  int last_ = 0;
  LineReader reader_;
  Json hello_;
};

}  // namespace footplate::test
