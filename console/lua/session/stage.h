#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "protocol/messages/order_report.h"
#include "protocol/schema.h"
#include "protocol/settings.h"

namespace footplate::lua {

/// One order of a chunk, from its first assignment to its outcome. Handles share it.
struct StagedOrder {
  Order order;
  std::string ref;               ///< the console's word for it; empty while it is only staged
  OrderReport report;            ///< the latest
  bool dropped = false;          ///< its chunk failed, or it was cancelled before it was sent
  std::set<std::string> forced;  ///< settings and actions that nobody is asked about
  std::string title;             ///< of its confirmation: "order 17 undone"

  bool sent() const { return !ref.empty() || order.id != 0; }
  /// Of the latest report; nothing while it is only staged, and where it was dropped.
  std::optional<OrderState> state() const;
  bool is_final() const { return state() && footplate::is_final(*state()); }
  /// "staged", "dropped", or the state.
  std::string state_word() const;
  /// The number that rank 0 has given it; 0: none.
  std::uint64_t number() const { return report.id != 0 ? report.id : order.id; }
};

/// What a chunk has asked for and not yet sent: one order for the chunk itself, and one for each at().
/// Not thread-safe.
class Stage {
 public:
  Stage(const Schema& schema, const Settings& settings) : schema_(schema), settings_(settings) {}

  /// The value a read in this chunk gets: staged, else current.
  const Value& value(std::string_view name) const;

  /// Errors: as Schema::check_live.
  Result<void> assign(const std::string& name, const Json& value);

  /// What `name` has to be when the order is applied. Errors: as Schema::check.
  Result<void> expect(const std::string& name, const Json& value);

  /// The order it became part of, and its position in there. Errors: as Schema::check_arguments.
  Result<std::pair<std::shared_ptr<StagedOrder>, int>> call(const std::string& action, const Json& arguments);

  /// Nobody is asked about what is assigned to `name`, or about the calls of that action.
  void force(const std::string& name) { target().forced.insert(name); }

  /// store[name] = the JSON `text`, in place of what was staged for it before; `keep`: it survives ckpt.load.
  Result<void> store(const std::string& name, const std::string& text, bool keep = false);
  /// Puts what is staged into `store`.
  void add_stored(Json& store) const;

  /// Assignments and calls go into an order for `step` until finish_at gives it out. One at a time.
  bool begin_at(std::int64_t step);
  std::shared_ptr<StagedOrder> finish_at();  ///< null where it changes nothing
  void abandon_at() { at_ = nullptr; }
  bool in_at() const { return at_ != nullptr; }

  /// The order that assignments go into now; null: nothing is staged.
  std::shared_ptr<StagedOrder> order_now() const { return at_ != nullptr ? at_ : main_; }

  /// Everything staged, checked as a whole, no longer staged. Errors: Schema::check_combination.
  Result<std::vector<std::shared_ptr<StagedOrder>>> take();

  /// The order that assignments go into now, to be put back where a set{} fails half-way.
  std::optional<Order> snapshot() const;
  void restore(std::optional<Order> before);

  void drop();
  bool empty() const { return orders_.empty() && main_ == nullptr; }

 private:
  StagedOrder& target();

  const Schema& schema_;
  const Settings& settings_;
  std::shared_ptr<StagedOrder> main_;
  std::shared_ptr<StagedOrder> at_;                   ///< being filled by at()
  std::vector<std::shared_ptr<StagedOrder>> orders_;  ///< finished at() orders
};

}  // namespace footplate::lua
