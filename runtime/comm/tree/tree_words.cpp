#include "runtime/comm/tree/tree_words.h"

#include <memory>
#include <type_traits>
#include <utility>

#include "protocol/overloaded.h"

namespace footplate::tree {
namespace {

using std::chrono::milliseconds;

/// Whole numbers in groups of seven bits, the lowest first, as in LEB128. Bytes with their count in front.
class Writer {
 public:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<std::uint8_t>(value | 0x80));
    bytes_.push_back(static_cast<std::uint8_t>(value));
  }
  void rank(int value) { number(static_cast<std::uint64_t>(value)); }
  void bytes(const Bytes& value) {
    number(value.size());
    bytes_.insert(bytes_.end(), value.begin(), value.end());
  }
  void ranks(const RankSet& value) {
    number(value.ranges().size());
    for (const auto& [first, last] : value.ranges()) {
      rank(first);
      rank(last);
    }
  }
  template <class List, class Each>
  void list(const List& values, const Each& each) {
    number(values.size());
    for (const auto& value : values) each(value);
  }
  Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

/// After the first thing that isn't there everything is nothing, and ok() false.
class Reader {
 public:
  Reader(std::span<const std::uint8_t> bytes, int world_size) : left_(bytes), world_size_(world_size) {}

  bool ok() const { return ok_; }
  bool is_at_end() const { return ok_ && left_.empty(); }

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (left_.empty()) break;
      const std::uint8_t byte = left_.front();
      left_ = left_.subspan(1);
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    ok_ = false;
    return 0;
  }
  int rank() {
    const std::uint64_t rank = number();
    ok_ = ok_ && rank < static_cast<std::uint64_t>(world_size_);
    return ok_ ? static_cast<int>(rank) : 0;
  }
  Bytes bytes() {
    const std::uint64_t size = number();
    if (!ok_ || size > left_.size()) return ok_ = false, Bytes();
    const auto taken = left_.first(size);
    left_ = left_.subspan(size);
    return {taken.begin(), taken.end()};
  }
  RankSet ranks() {
    RankSet ranks;
    list([&] {
      const int first = rank();
      ranks.add(first, rank());
    });
    ok_ = ok_ && !ranks.empty();
    return ranks;
  }
  /// As many times as a count in front says.
  template <class Each>
  void list(const Each& each) {
    for (std::uint64_t left = number(); ok_ && left > 0; --left) each();
  }

 private:
  std::span<const std::uint8_t> left_;
  int world_size_;
  bool ok_ = true;
};

void write(Writer& out, const Down& down) {
  out.number(down.layout);
  out.number(down.number);
  out.bytes(down.bytes);
}
void read(Reader& in, Down& down) {
  down.layout = in.number();
  down.number = in.number();
  down.bytes = in.bytes();
}

void write(Writer& out, const Up& up) {
  out.number(up.layout);
  out.list(up.said, [&](const Said& said) {
    out.ranks(said.by);
    out.bytes(said.bytes);
  });
}
void read(Reader& in, Up& up) {
  up.layout = in.number();
  in.list([&] {
    Said said;
    said.by = in.ranks();
    said.bytes = in.bytes();
    up.said.push_back(std::move(said));
  });
}

void write(Writer& out, const Sign& sign) {
  out.number(sign.layout);
  out.number(sign.taken);
  out.list(sign.silent, [&](const auto& silent) {
    out.rank(silent.first);
    out.number(static_cast<std::uint64_t>(silent.second.count()));
  });
  out.list(sign.beats, [&](const auto& beat) {
    out.rank(beat.first);
    out.bytes(beat.second);
  });
}
void read(Reader& in, Sign& sign) {
  sign.layout = in.number();
  sign.taken = in.number();
  in.list([&] {
    const int rank = in.rank();
    sign.silent.emplace_back(rank, milliseconds(static_cast<std::int64_t>(in.number())));
  });
  in.list([&] {
    const int rank = in.rank();
    sign.beats.emplace_back(rank, in.bytes());
  });
}

void write(Writer& out, const Direct& direct) {
  out.bytes(direct.bytes);
}
void read(Reader& in, Direct& direct) {
  direct.bytes = in.bytes();
}

void write(Writer& out, const Relaid& relaid) {
  out.number(relaid.layout);
  out.number(relaid.received);
  out.list(relaid.leaves, [&](int leaf) { out.rank(leaf); });
}
void read(Reader& in, Relaid& relaid) {
  relaid.layout = in.number();
  relaid.received = in.number();
  in.list([&] { relaid.leaves.push_back(in.rank()); });
}

void write(Writer& out, const Settled& settled) {
  out.number(settled.layout);
  out.number(settled.taken);
  out.number(settled.lost);
}
void read(Reader& in, Settled& settled) {
  settled.layout = in.number();
  settled.taken = in.number();
  settled.lost = in.number();
}

void write(Writer& /*out*/, const Left& /*left*/) {}
void read(Reader& /*in*/, Left& /*left*/) {}

template <std::size_t kKind = 0>
std::optional<Word> read_word(std::uint64_t kind, Reader& in) {
  if constexpr (kKind < std::variant_size_v<Word>) {
    if (kind != kKind) return read_word<kKind + 1>(kind, in);
    std::variant_alternative_t<kKind, Word> word;
    read(in, word);
    if (in.is_at_end()) return word;
  }
  return std::nullopt;
}

}  // namespace

MessageBytes encoded(const Word& word) {
  Writer out;
  out.number(word.index());
  std::visit([&](const auto& one) { write(out, one); }, word);
  return std::make_shared<const Bytes>(out.take());
}

std::optional<Word> decoded(std::span<const std::uint8_t> bytes, int world_size) {
  Reader in(bytes, world_size);
  const std::uint64_t kind = in.number();
  return in.ok() ? read_word(kind, in) : std::nullopt;
}

}  // namespace footplate::tree
