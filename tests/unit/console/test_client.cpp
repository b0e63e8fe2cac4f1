#include "test_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

namespace footplate::test {

TestClient::TestClient(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = socket;
  std::copy(path.begin(), path.end(), std::begin(address.sun_path));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  for (;;) {
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) break;
    ::close(fd_);
    fd_ = -1;
    if (std::chrono::steady_clock::now() > end) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  hello_ = read();
}

TestClient::~TestClient() {
  close();
}

void TestClient::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

void TestClient::send_text(const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(fd_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;
    sent += static_cast<std::size_t>(count);
  }
}

int TestClient::send(Json request) {
  request["id"] = ++last_;
  send_text(to_line(request));
  return last_;
}

Json TestClient::read(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    auto line = reader_.next();
    if (!line) return nullptr;
    if (*line) return parse_line(**line).value();
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd readable{fd_, POLLIN, 0};
    if (left <= 0 || ::poll(&readable, 1, static_cast<int>(left)) <= 0) return nullptr;
    std::array<char, 65536> bytes;
    const ssize_t count = ::recv(fd_, bytes.data(), bytes.size(), 0);
    if (count <= 0) return nullptr;
    reader_.append({bytes.data(), static_cast<std::size_t>(count)});
  }
}

Json TestClient::answer(int id, double seconds) {
  for (;;) {
    Json line = read(seconds);
    if (line.is_null()) return line;
    const std::string type = line.value("type", "");
    if ((type == "result" || type == "error") && line.value("id", Json()) == id) return line;
    others.push_back(std::move(line));
  }
}

bool TestClient::hears(const std::string& part) {
  for (Json line = read(20); line.is_object(); line = read(20))
    if (line.value("text", "").find(part) != std::string::npos) return true;
  return false;
}

std::string TestClient::run(const std::string& code) {
  const Json answer = eval(code);
  if (answer.is_null()) return "(no answer)";
  return answer["type"] == "error" ? answer["error"]["message"] : answer["value"]["text"];
}

}  // namespace footplate::test
