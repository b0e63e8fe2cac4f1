#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "protocol/port_range.h"
#include "protocol/result.h"

namespace footplate {

/// Where a rank can be rung from other hosts; exchanged by MPI once at the start.
struct BellCard {
  std::uint64_t token = 0;  ///< random: a ring has it, so that nobody else rings
  std::uint32_t port = 0;   ///< 0: it can't be rung
  std::uint32_t count = 0;
  std::array<std::uint32_t, 4> addresses{};  ///< IPv4, in the host's byte order; the first `count`
};

/// Wakes ranks of other hosts, as Doorbell does those of the same host: a UDP socket. A ring is only a hint.
/// Whether rings get through, with a firewall or several networks between the hosts, is found out by asking.
/// Ranks are named by origin. One thread.
class RemoteBells {
 public:
  /// Binds a port of its own on all addresses, of `ports` where there are some. Errors: the system's.
  static Result<std::unique_ptr<RemoteBells>> install(int origin, const std::vector<std::uint32_t>& addresses,
                                                      const std::optional<PortRange>& ports = {});
  ~RemoteBells();
  RemoteBells(const RemoteBells&) = delete;
  RemoteBells& operator=(const RemoteBells&) = delete;

  const BellCard& card() const { return card_; }
  /// Of another rank.
  void know(int origin, const BellCard& card);

  /// Readable once somebody has rung.
  int fd() const { return fd_; }
  /// Takes the rings that have come; answers who has asked. Returns who has rung.
  std::set<int> take();
  /// Rings at another rank; returns at once.
  void ring(int origin) { send(origin, Kind::ring); }
  /// Rings at a rank at all of its addresses, for it to ring back.
  void ask(int origin) { send(origin, Kind::question); }
  /// Whether a ring of that rank has come: its rings get here.
  bool hears(int origin) const { return heard_.contains(origin); }

 private:
  enum class Kind : std::uint32_t { ring = 0, question = 1 };
  struct Ring {
    std::uint64_t token = 0;
    std::int32_t origin = 0;
    std::uint32_t kind = 0;
  };

  RemoteBells(int origin, int fd) : origin_(origin), fd_(fd) {}
  void send(int origin, Kind kind);
  void send_to(std::uint32_t address, std::uint32_t port, const Ring& ring) const;

  int origin_;
  int fd_;
  BellCard card_;
  std::map<int, BellCard> known_;
  std::set<int> heard_;
  std::map<int, std::uint32_t> proven_;  ///< of a card's addresses the one that its rank has rung from
};

}  // namespace footplate
