#include "runtime/checkpoint/state_part.h"

#include <exception>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/checkpoint/slices.h"

namespace footplate {
namespace {

TensorType tensor_type(DataType type) {
  switch (type) {
    case DataType::float32:
      return TensorType::float32;
    case DataType::float64:
      return TensorType::float64;
    case DataType::int64:
      return TensorType::int64;
    case DataType::uint8:
      return TensorType::uint8;
    case DataType::bfloat16:
      return TensorType::bfloat16;
  }
  return TensorType::uint8;
}

/// Where a device fails, its copies throw.
template <class T, class Body>
Result<T> copied(const Body& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return fail(ErrorKind::failed, error.what());
  }
}

}  // namespace

std::size_t bytes_of(const StateTable& state) {
  std::size_t bytes = 0;
  for (const auto& entry : state.entries()) bytes += entry.bytes;
  return bytes;
}

Result<std::vector<TensorSpec>> specs_of(const StateTable& state) {
  std::vector<TensorSpec> specs;
  std::set<std::string_view> sharded;
  for (const auto& entry : state.entries()) {
    if (entry.placement == Placement::local)
      return fail(ErrorKind::failed,
                  "'" + entry.name + "' is each rank's own: local state can't be saved yet");
    if (!entry.shard || sharded.insert(entry.name).second)
      specs.push_back({entry.name, tensor_type(entry.type), entry.shard ? entry.shard->shape : entry.shape});
  }
  return specs;
}

Result<StatePart> StatePart::of(const StateTable& state, int part, int parts) {
  if (auto all = specs_of(state); !all) return tl::unexpected(all.error());
  std::vector<const StateEntry*> replicated;
  std::vector<TensorSpec> specs;
  StatePart made;
  for (const StateEntry& entry : state.entries()) {
    TensorSpec whole{entry.name, tensor_type(entry.type), entry.shard ? entry.shard->shape : entry.shape};
    if (entry.shard) {
      const bool is_nobodys = part == 0 && bytes_of(whole.type, whole.shape) == 0U;
      if (entry.bytes > 0 || is_nobodys) made.add_shard(entry, whole);
    } else {
      replicated.push_back(&entry);
      specs.push_back(std::move(whole));
    }
  }
  if (part >= parts) return made;
  for (const TensorSlice& slice : slices_of_part(specs, part, parts))
    made.add_slice(*replicated[slice.tensor], specs[slice.tensor], slice);
  return made;
}

void StatePart::add_slice(const StateEntry& entry, const TensorSpec& whole, const TensorSlice& slice) {
  const std::size_t size = size_of(whole.type);
  Piece piece{&entry,
              static_cast<std::size_t>(slice.first) * size,
              static_cast<std::size_t>(slice.count) * size,
              {whole.name, whole.type, whole.shape, {}}};
  if (piece.bytes != entry.bytes) {
    piece.tensor.slice_of = SliceOf{whole.shape, slice.first};
    piece.tensor.shape = {slice.count};
  }
  pieces_.push_back(std::move(piece));
}

/// A file may hold several of one tensor: each has a name of its own.
void StatePart::add_shard(const StateEntry& entry, const TensorSpec& whole) {
  Piece piece{&entry, 0, entry.bytes, {whole.name, whole.type, entry.shape, {}}};
  piece.tensor.name += "@" + std::to_string(entry.shard->first);
  piece.tensor.slice_of = SliceOf{whole.shape, entry.shard->first, whole.name};
  pieces_.push_back(std::move(piece));
}

std::size_t StatePart::bytes() const {
  std::size_t bytes = 0;
  for (const Piece& piece : pieces_) bytes += piece.bytes;
  return bytes;
}

Result<HostTensors> StatePart::on_host() const {
  return copied<HostTensors>([&] {
    HostTensors tensors;
    for (const Piece& piece : pieces_) {
      std::vector<std::byte> copy;
      TensorView view = piece.tensor;
      if (piece.entry->memory == nullptr) {
        view.bytes = piece.entry->on_host(copy).subspan(piece.first, piece.bytes);
      } else {
        copy.resize(piece.bytes);
        piece.entry->copy_to(copy, piece.first);
        view.bytes = copy;
      }
      tensors.views.push_back(std::move(view));
      tensors.copies.push_back(std::move(copy));  // its memory stays where it is
    }
    return tensors;
  });
}

Result<std::vector<TensorView>> StatePart::copy_into(std::span<std::byte> room) const {
  return copied<std::vector<TensorView>>([&] {
    std::vector<TensorView> views;
    for (const Piece& piece : pieces_) {
      const auto taken = room.first(piece.bytes);
      room = room.subspan(piece.bytes);
      piece.entry->copy_to(taken, piece.first);
      TensorView view = piece.tensor;
      view.bytes = taken;
      views.push_back(std::move(view));
    }
    return views;
  });
}

}  // namespace footplate
