#pragma once

namespace footplate {

/// Several lambdas as one, for std::visit: one for each alternative, `[](const auto&) {}` for the rest.
template <class... Each>
struct Overloaded : Each... {
  using Each::operator()...;
};
template <class... Each>
Overloaded(Each...) -> Overloaded<Each...>;

}  // namespace footplate
