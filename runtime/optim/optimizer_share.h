#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "runtime/optim/optimizer.h"

namespace footplate {

/// What a rank updates of the parameters where the ranks share that work, and what it has a copy of.
struct KeptShares {
  int share = 0, copied_share = 0;  ///< each by the number of the rank that it is made for
  int shares = 1;
  ShareOfRank mine;
  std::optional<ShareOfRank> copied;
};

/// What a rank does of the optimizer's work: all of it, or with optim.shard its share. With ckpt.redundancy
/// it also does the work of another rank's share, in each step and to the same bits: if that rank is lost,
/// its state is here. Training thread.
class OptimizerShare {
 public:
  /// As make_optimizer(). `kept`: nothing, and it is all.
  OptimizerShare(OptimizerKind kind, const std::vector<v1::Parameter>& parameters,
                 const std::vector<v1::Group>& groups, ComputeDevice& device,
                 const std::optional<KeptShares>& kept);

  void set_learning_rate(double rate);
  /// Optimizer::step().
  void step(const OptimizerSettings& settings, const at::Tensor& divisor, const at::Tensor& skip);
  /// What it keeps of its own share ("optim/…").
  void list_state(StateTable& table) const { mine_->list_state(table); }
  /// Optimizer::take_parameters().
  void take_parameters();
  /// It makes no step any more, and what it keeps is still there.
  void forget_gradients();
  /// It makes steps again, of the same share: with the gradients of now.
  void take_gradients(const std::vector<v1::Parameter>& parameters, const std::vector<v1::Group>& groups,
                      const std::optional<KeptShares>& kept);

  int share() const { return share_; }
  int copied_share() const { return copied_share_; }  ///< its own: there is no copy
  int shares() const { return shares_; }              ///< 1: it is all

  /// What it keeps of its own share, and the parameters in it ("model/…").
  std::vector<StateEntry> own() const { return entries_of(*mine_, mine_values_); }
  /// The same of the copy; empty: there is none.
  std::vector<StateEntry> copied() const;

 private:
  static std::vector<StateEntry> entries_of(const Optimizer& optimizer,
                                            const std::vector<StateEntry>& values);

  const OptimizerKind kind_;
  int share_ = 0, copied_share_ = 0, shares_ = 1;
  std::unique_ptr<Optimizer> mine_, copy_;
  std::vector<StateEntry> mine_values_, copied_values_;
};

}  // namespace footplate
