#include "runtime/checkpoint/state_part.h"

#include <exception>
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
  for (const auto& entry : state.entries()) {
    if (entry.placement != Placement::replicated)
      return fail(ErrorKind::failed,
                  "'" + entry.name + "' isn't replicated: sharded and local state can't be saved yet");
    specs.push_back({entry.name, tensor_type(entry.type), entry.shape});
  }
  return specs;
}

Result<StatePart> StatePart::of(const StateTable& state, int part, int parts) {
  auto specs = specs_of(state);
  if (!specs) return tl::unexpected(specs.error());
  StatePart made;
  if (part >= parts) return made;
  for (const Slice& slice : slices_of_part(*specs, part, parts)) {
    const StateEntry& entry = state.entries()[slice.tensor];
    TensorSpec& spec = (*specs)[slice.tensor];
    const std::size_t size = size_of(spec.type);
    Piece piece{&entry,
                static_cast<std::size_t>(slice.first) * size,
                static_cast<std::size_t>(slice.count) * size,
                {spec.name, spec.type, spec.shape, {}}};
    if (piece.bytes != entry.bytes) {
      piece.tensor.slice_of = SliceOf{spec.shape, slice.first};
      piece.tensor.shape = {slice.count};
    }
    made.pieces_.push_back(std::move(piece));
  }
  return made;
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
