// What NCCL's own service says: asked over its line protocol.
#include "console/network/ras.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <thread>

#include "protocol/fd.h"

namespace footplate {
namespace {

using testing::HasSubstr;

/// One connection to a port of its own, served by `serve`.
class Service {
 public:
  explicit Service(std::function<void(int)> serve)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(place);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&place), sizeof(place)), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&place), &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(place.sin_port));
    thread_ = std::thread([this, serve = std::move(serve)] {
      const Fd client(::accept(listener_.get(), nullptr, nullptr));
      serve(client.get());
    });
  }
  ~Service() { thread_.join(); }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  const std::string& address() const { return address_; }

 private:
  Fd listener_;
  std::string address_;
  std::thread thread_;
};

std::string heard(int client) {
  std::string line;
  for (char c = 0; ::recv(client, &c, 1, 0) == 1 && c != '\n';) line += c;
  return line;
}

void say(int client, const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto sent = ::send(client, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += static_cast<std::size_t>(sent);
  }
}

void say_hello(int client) {
  EXPECT_EQ(heard(client), "CLIENT PROTOCOL 2");
  say(client, "SERVER PROTOCOL 3\n");  // another version of it: gone on with all the same
  EXPECT_EQ(heard(client), "TIMEOUT 5");
  say(client, "OK\n");
}

TEST(Ras, ReadsWhatItSaysToItsEnd) {
  Service service([](int client) {
    say_hello(client);
    EXPECT_EQ(heard(client), "VERBOSE STATUS");
    say(client, "NCCL version 2.28.9\n");
    say(client, std::string(100'000, 'x'));
  });
  const auto said = ask_nccl_ras(service.address(), true, std::chrono::seconds(5));
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_EQ(*said, "NCCL version 2.28.9\n" + std::string(100'000, 'x'));
}

TEST(Ras, TakesAMebibyteAtMost) {
  Service service([](int client) {
    say_hello(client);
    heard(client);
    say(client, std::string(3 << 20, 'x'));
  });
  const auto said = ask_nccl_ras(service.address(), false, std::chrono::seconds(5));
  ASSERT_TRUE(said) << said.error().message;
  EXPECT_THAT(said->substr(said->size() - 20), HasSubstr("cut here"));
}

TEST(Ras, SomethingElseThatListensIsNamed) {
  {
    Service service([](int client) {
      heard(client);
      say(client, "HTTP/1.1 400 Bad Request\r\n");
    });
    EXPECT_THAT(ask_nccl_ras(service.address(), false, std::chrono::seconds(5)).error().message,
                HasSubstr("what listens at " + service.address() + " doesn't answer as NCCL's RAS does"));
  }
  Service service([](int client) { heard(client); });  // closes
  EXPECT_THAT(ask_nccl_ras(service.address(), false, std::chrono::seconds(5)).error().message,
              HasSubstr("doesn't answer as NCCL's RAS does"));
}

TEST(Ras, WhoSaysNothingIsWaitedForNoLongerThanAsked) {
  Service service([](int client) {
    heard(client);
    heard(client);  // until the other side gives up
  });
  const auto said = ask_nccl_ras(service.address(), false, std::chrono::seconds(0));
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().kind, ErrorKind::timed_out);
}

TEST(Ras, WhereNobodyListensItSaysWhy) {
  for (const char* address : {"127.0.0.1:1", "localhost"})
    EXPECT_THAT(ask_nccl_ras(address, false, std::chrono::seconds(5)).error().message,
                HasSubstr(std::string("nobody answers at ") + address))
        << address;
}

}  // namespace
}  // namespace footplate
