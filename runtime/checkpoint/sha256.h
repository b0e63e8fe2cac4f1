#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace footplate {

/// SHA-256 over bytes that come piece by piece (OpenSSL's). One thread.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void add(std::span<const std::byte> bytes);
  /// 64 lower-case hexadecimal digits. Once, at the end.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace footplate
