#include "runtime/comm/tree/tree_channel.h"

#include <algorithm>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "protocol/overloaded.h"
#include "runtime/comm/tree/sent_again.h"
#include "runtime/comm/tree/tree_children.h"
#include "runtime/comm/tree/tree_layout.h"
#include "runtime/comm/tree/tree_words.h"

namespace footplate {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Clock = SteadyClock;

/// What a rank sends quietly gets to rank 0 as often as costs it so much for each rank of the world: 0.5 % of
/// a core (scripts/bench control).
constexpr microseconds kBeatOfARank{150};

/// A rank whose control thread runs takes another layout sooner; one that doesn't is treated as silent.
constexpr milliseconds kSettling{200};

/// More than 30 methods: the channel's own, and one for each word of the tree.
class TreeChannel final : public MessageChannel {
 public:
  TreeChannel(std::unique_ptr<MessageChannel> direct, TreeOptions options)
      : direct_(std::move(direct)), options_(std::move(options)), layout_(1, options_.fan_out) {
    begin_world();
  }

  int rank() const override { return direct_->rank(); }
  int world_size() const override { return direct_->world_size(); }
  bool rings() const override { return direct_->rings(); }
  void wake() override { direct_->wake(); }
  void wake_peers() override { direct_->wake_peers(); }
  bool is_direct() const override { return is_star_; }
  int height() const override { return rank() == 0 ? std::max(1, place_.height) : place_.height; }

  void rebuilt() override {
    direct_->rebuilt();
    begin_world();
  }

  void send(int to, const MessageBytes& bytes) override {
    if (is_star_ || to == rank()) return direct_->send(to, bytes);
    if (rank() == 0 || to != 0) return direct_->send(to, encoded(tree::Direct{*bytes}));
    said_.add(*bytes);
    joint_->add({RankSet(rank()), *bytes}, Clock::now());
    pass_up(joint_->take_due(Clock::now()));
  }

  void send_to(const std::vector<int>& ranks, const MessageBytes& bytes) override {
    if (is_star_) return direct_->send_to(ranks, bytes);
    for (const int rank : ranks) send(rank, bytes);
  }

  void send_to_others(const MessageBytes& bytes) override {
    if (is_star_ || rank() != 0) return MessageChannel::send_to_others(bytes);
    tree::Down down = log_.add(*bytes);
    down.layout = number_;
    direct_->send_to(children_->ranks(), encoded(std::move(down)));
  }

  void send_quietly(int to, const MessageBytes& bytes) override {
    if (is_star_ || to == rank()) return direct_->send_quietly(to, bytes);
    const auto now = Clock::now();
    if (now >= next_beat_) {
      beats_[rank()] = *bytes;
      next_beat_ = now + std::max<Clock::duration>(options_.heartbeat, kBeatOfARank * world_size()) -
                   options_.heartbeat / 2;
    }
    tree::Sign sign = sign_of(now);
    for (auto& [of, beat] : beats_) sign.beats.emplace_back(of, std::move(beat));
    beats_.clear();
    direct_->send_quietly(place_.parent, encoded(std::move(sign)));
  }

  void leave(const MessageBytes& bytes) override {
    if (is_star_) return direct_->send(0, bytes);
    if (rank() == 0) {
      send_last();
      return direct_->send(0, bytes);
    }
    while (auto received = direct_->poll())
      if (received->source != rank()) take(std::move(*received));
    pass_up(joint_->take_all());
    direct_->send(0, encoded(tree::Direct{*bytes}));
    direct_->send(0, encoded(tree::Left()));
  }

  std::optional<Message> poll() override {
    if (is_star_) return direct_->poll();
    while (ready_.empty()) {
      auto received = direct_->poll();
      if (!received) break;
      if (received->source == rank()) return received;
      take(std::move(*received));
    }
    if (ready_.empty()) {
      look();
      return std::nullopt;
    }
    Message message = std::move(ready_.front());
    ready_.pop_front();
    return message;
  }

  void wait(milliseconds at_most, int extra_fd) override {
    if (is_star_) return direct_->wait(at_most, extra_fd);
    if (!ready_.empty()) return;
    const auto next = std::min({joint_->next_due(), children_->next_silence(), settled_until_});
    const auto now = Clock::now();
    if (next <= now) return;
    if (next - now < at_most) at_most = std::chrono::ceil<milliseconds>(next - now);
    direct_->wait(at_most, extra_fd);
  }

  std::optional<HeardOf> heard_of() override {
    const auto now = Clock::now();
    if (is_star_ || rank() != 0 || now < next_heard_) return std::nullopt;
    next_heard_ = now + options_.heartbeat / 2;
    HeardOf heard = children_->heard_of(now);
    for (const auto& [suspect, since] : suspects_) {
      heard.well.remove(suspect);
      heard.silent.emplace_back(suspect, std::chrono::duration_cast<milliseconds>(now - since));
    }
    heard.well.add(std::exchange(settled_, RankSet()));
    return heard;
  }

 private:
  // --- the layout ---

  void begin_world() {
    number_ = 1;
    layout_ = TreeLayout(world_size(), options_.fan_out);
    is_star_ = layout_.is_star();
    down_ = DownOrder();
    log_ = DownLog();
    said_ = SaidLog();
    received_.assign(rank() == 0 ? static_cast<std::size_t>(world_size()) : 0, 0);
    ready_.clear();
    early_.clear();
    left_ = RankSet();
    unsettled_ = RankSet();
    suspects_.clear();
    settled_ = RankSet();
    settled_until_ = Clock::time_point::max();
    next_beat_ = next_heard_ = {};
    take_place();
  }

  void take_place() {
    place_ = layout_.place_of(rank());
    int below = 1;
    for (const TreeLayout::Child& child : place_.children) below += child.ranks.size();
    children_.emplace(place_.children, options_.heartbeat, options_.stalled, Clock::now());
    joint_.emplace(below, options_.merge);
    beats_.clear();
  }

  /// Rank 0: another layout, in which these pass nothing on, nor do suspects and who hasn't answered the last
  /// one.
  void lay_out(RankSet leaves) {
    leaves.add(left_);
    leaves.add(unsettled_);
    for (const auto& [suspect, since] : suspects_) leaves.add(suspect, suspect);
    std::vector<int> sorted;
    leaves.for_each([&](int leaf) { sorted.push_back(leaf); });
    layout_ = TreeLayout(world_size(), options_.fan_out, std::move(sorted));
    ++number_;
    take_place();
    std::map<std::uint64_t, std::vector<int>> by_received;
    for (int to = 1; to < world_size(); ++to)
      if (!left_.contains(to)) by_received[received_[static_cast<std::size_t>(to)]].push_back(to);
    for (const auto& [received, ranks] : by_received) {
      direct_->send_to(ranks, encoded(tree::Relaid{number_, received, layout_.leaves()}));
      for (const int one : ranks) unsettled_.add(one, one);
    }
    settled_until_ = Clock::now() + kSettling;
  }

  bool is_leaf(int rank) const { return layout_.place_of(rank).children.empty(); }

  // --- words ---

  void take(Message received) {
    auto word = tree::decoded(received.bytes, world_size());
    if (!word) {
      ready_.push_back(std::move(received));  // whoever reads it says what is wrong with it
      return;
    }
    std::visit(Overloaded{[&](tree::Direct& direct) {
                            ready_.push_back({received.source, std::move(direct.bytes)});
                          },
                          [&](tree::Relaid& relaid) { take_layout(std::move(relaid)); },
                          [&](tree::Left&) {
                            if (rank() == 0) take_left(received.source);
                          },
                          [&](auto& of_layout) {
                            if (of_layout.layout > number_)
                              early_.push_back(std::move(received));
                            else if (of_layout.layout == number_)
                              take(received, of_layout);
                          }},
               *word);
  }

  void take(const Message& received, tree::Down& down) {
    if (!down_.add(std::move(down))) return;
    if (!children_->ranks().empty())
      direct_->send_to(children_->ranks(), std::make_shared<const tree::Bytes>(received.bytes));
    while (auto bytes = down_.take()) ready_.push_back({0, *std::move(bytes)});
  }

  void take(const Message& received, tree::Up& up) {
    children_->heard(received.source, Clock::now());
    if (rank() != 0) {
      const auto now = Clock::now();
      for (tree::Said& said : up.said) joint_->add(std::move(said), now);
      return pass_up(joint_->take_due(now));
    }
    for (tree::Said& said : up.said) {
      said.by.for_each([this](int one) { ++received_[static_cast<std::size_t>(one)]; });
      const int source = said.by.first();
      said.by.remove(source);
      ready_.push_back({source, std::move(said.bytes), std::move(said.by)});
    }
  }

  void take(const Message& received, tree::Sign& sign) {
    children_->add_sign(received.source, sign, Clock::now());
    for (auto& [of, beat] : sign.beats) {
      if (rank() == 0)
        ready_.push_back({of, std::move(beat)});
      else
        beats_[of] = std::move(beat);
    }
    if (rank() == 0) log_.forget_up_to(children_->taken());
  }

  void take(const Message& received, const tree::Settled& settled) {
    const int source = received.source;
    received_[static_cast<std::size_t>(source)] += settled.lost;
    settled_.add(source, source);
    unsettled_.remove(source);
    suspects_.erase(source);
    next_heard_ = {};
    log_.for_each_after(settled.taken, [&](tree::Down down) {
      down.layout = number_;
      direct_->send(source, encoded(std::move(down)));
    });
  }

  /// Rank 0. Once one that others are below has left, all are about to: they speak with rank 0 itself from
  /// now on.
  void take_left(int rank) {
    const bool was_relay = !is_leaf(rank);
    left_.add(rank, rank);
    unsettled_.remove(rank);
    suspects_.erase(rank);
    if (was_relay) lay_out(RankSet(1, world_size() - 1));
  }

  /// Rank 0, before it ends: nobody's last message waits for a rank that stands.
  void send_last() {
    std::vector<int> others;
    for (int to = 1; to < world_size(); ++to)
      if (!left_.contains(to)) others.push_back(to);
    log_.for_each_after(children_->taken(), [&](tree::Down down) {
      down.layout = number_;
      direct_->send_to(others, encoded(std::move(down)));
    });
  }

  void take_layout(tree::Relaid relaid) {
    if (relaid.layout <= number_) return;
    number_ = relaid.layout;
    layout_ = TreeLayout(world_size(), options_.fan_out, std::move(relaid.leaves));
    take_place();
    direct_->send(0, encoded(tree::Settled{number_, down_.taken(), said_.forget_up_to(relaid.received)}));
    for (const tree::Bytes& bytes : said_.kept()) joint_->add({RankSet(rank()), bytes}, Clock::now());
    pass_up(joint_->take_due(Clock::now()));
    for (Message& message : std::exchange(early_, {})) take(std::move(message));
  }

  // --- upwards ---

  void pass_up(std::vector<tree::Said> said) {
    if (!said.empty()) direct_->send(place_.parent, encoded(tree::Up{number_, std::move(said)}));
  }

  tree::Sign sign_of(Clock::time_point now) const {
    return {.layout = number_,
            .taken = std::min(down_.taken(), children_->taken()),
            .silent = children_->silent(now)};
  }

  /// Once everything that is here has been taken: a sign may have lain here. Who has become silent is told at
  /// once.
  void look() {
    const auto now = Clock::now();
    pass_up(joint_->take_due(now));
    children_->look(now);
    if (children_->take_news(now)) {
      if (rank() != 0) return direct_->send(place_.parent, encoded(sign_of(now)));
      next_heard_ = {};
    }
    if (rank() == 0) mend(now);
  }

  /// Rank 0: where others are below a rank that is silent, or doesn't answer the last layout.
  void mend(Clock::time_point now) {
    auto silent = children_->silent(now);
    std::erase_if(silent, [this](const auto& one) { return left_.contains(one.first); });
    bool mends =
        std::any_of(silent.begin(), silent.end(), [this](const auto& one) { return !is_leaf(one.first); });
    if (now >= settled_until_) {
      const auto asked = std::exchange(settled_until_, Clock::time_point::max()) - kSettling;
      unsettled_.for_each([&](int one) {
        suspects_.emplace(one, asked);
        mends = mends || !is_leaf(one);
      });
    }
    if (!mends) return;
    for (const auto& [one, lasts] : silent) suspects_.emplace(one, now - lasts);
    lay_out({});
  }

  std::unique_ptr<MessageChannel> direct_;
  TreeOptions options_;
  TreeLayout layout_;
  std::uint64_t number_ = 1;  ///< of the layout
  bool is_star_ = true;
  TreeLayout::Place place_;
  std::optional<TreeChildren> children_;
  std::optional<JointMessages> joint_;
  DownOrder down_;
  SaidLog said_;
  std::map<int, tree::Bytes> beats_;  ///< the newest of this rank and those below, on their way
  Clock::time_point next_beat_{};
  std::deque<Message> ready_;
  std::vector<Message> early_;  ///< of a layout that this rank hasn't heard of
  // Rank 0 alone.
  DownLog log_;
  std::vector<std::uint64_t> received_;  ///< messages of each rank
  RankSet left_;
  RankSet unsettled_;                                           ///< haven't answered the layout
  Clock::time_point settled_until_ = Clock::time_point::max();  ///< when they are looked at
  std::map<int, Clock::time_point>
      suspects_;     ///< silent, or asked for an answer that hasn't come, since then
  RankSet settled_;  ///< have answered it of late
  Clock::time_point next_heard_{};
};

}  // namespace

std::unique_ptr<MessageChannel> make_tree_channel(std::unique_ptr<MessageChannel> direct,
                                                  TreeOptions options) {
  return std::make_unique<TreeChannel>(std::move(direct), std::move(options));
}

}  // namespace footplate
