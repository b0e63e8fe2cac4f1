#pragma once

// What others build against: a task is a model, its data and its loss; footplate trains it. Everything here
// is an interface or plain data: a plugin needs no symbol of footplate's, only LibTorch's. docs/own-models.md
// goes from nothing to a steered run.

#include <ATen/core/Tensor.h>
#include <torch/version.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace footplate::v1 {

/// Changes with every change of what is below. A plugin of another number is refused.
inline constexpr std::uint32_t kApi = 4;

// ---------------------------------------------------------------- what a task declares, before it is made

/// A setting of the task's own. Its full name is task.NAME; it is in the help, in completion, in the journal
/// and in checkpoints like every other one.
struct SettingDecl {
  std::string name;     ///< "dropout": lower case, digits and '_'
  std::string initial;  ///< as JSON: "0.1", "\"cosine\"", "true"; its kind is the setting's
  std::string help;     ///< one or two full sentences
  std::string unit = {};
  double min = -std::numeric_limits<double>::infinity();  ///< closed range of a number
  double max = std::numeric_limits<double>::infinity();
  double usual_min = -std::numeric_limits<double>::infinity();  ///< beyond it the console asks once
  double usual_max = std::numeric_limits<double>::infinity();
  std::vector<std::string> choices = {};  ///< of a text
  std::vector<std::string> aliases = {};  ///< names that people will type
  std::string applies = "step";           ///< "step": at the agreed step · "restart" · "fixed" for the run
};

/// A parameter of an action.
struct ParamDecl {
  std::string name;
  std::string kind;          ///< "integer", "number", "boolean" or "string"
  std::string initial = {};  ///< as JSON; empty: it may be left out and has no value
  std::string help;          ///< what it says; a full sentence
};

/// Something that the console can ask the task to do, on all ranks before one step: task.NAME{ … }.
struct ActionDecl {
  std::string name;
  std::string help;
  std::vector<ParamDecl> params = {};
  std::string role = "operate";  ///< "operate" or "admin"
  bool dangerous = false;        ///< a terminal asks once
};

/// A number beside the loss: train/NAME and eval/NAME, and of several data sets data/SET/NAME and
/// eval/SET/NAME.
struct MetricDecl {
  std::string name;         ///< "accuracy"; none of footplate's own: "loss", "lr", "best", "seconds", …
  bool mean = true;         ///< its sum is divided by the weight of what was computed; false: the sum itself
  bool in_training = true;  ///< false: evaluate() alone counts it, there is no train/NAME
};

/// One of several data sets that a run trains on at once. Its setting data.share.NAME says how much of each
/// step comes from it, in proportion to the others'; it is live. Its metrics are data/NAME/… and eval/NAME/….
struct SetDecl {
  std::string name;       ///< "fashion": as a setting's
  double share = 1;       ///< data.share.NAME at first; 0: it is only evaluated
  std::string help = {};  ///< what it holds; a full sentence, or nothing
};

struct Declaration {
  std::string unit = "samples";        ///< what a batch's weight counts: "tokens", "images"
  std::vector<std::string> uses = {};  ///< settings of footplate's that only some tasks read: "model.width"
  std::vector<SettingDecl> settings = {};
  std::vector<ActionDecl> actions = {};
  std::vector<MetricDecl> metrics = {};
  std::vector<SetDecl> sets = {};  ///< where there are several; Task::data() gives these, in this order
  /// Whether data.cache may keep what load() gives: it follows from the indexes of the samples and from
  /// settings task.*, not from the draws. Each tensor has a row for each sample, in their order; the samples
  /// of a set have rows of one shape, and one weight.
  bool cacheable = false;
};

// ---------------------------------------------------------------- what a task has

/// A trained tensor: a float32 leaf that requires a gradient, contiguous, on the host's device, never
/// replaced. Its initial values are the same on all ranks. With train.param_dtype = "bf16" it becomes
/// bfloat16 once the task is made, if it is a matrix and no table.
struct Parameter {
  std::string name;  ///< "blocks.0.qkv.weight"
  at::Tensor tensor;
  std::string group = {};  ///< of Task::groups(); empty: none
};

/// How the optimizer treats some parameters.
struct Group {
  std::string name;
  double lr_factor = 1;  ///< times the learning rate of the step
  /// In place of optim.weight_decay. Nothing: that one for matrices, none for vectors.
  std::optional<double> weight_decay = {};
  /// Its matrices are tables of rows, as embeddings and the layer before a softmax are: optim.kind = "muon"
  /// leaves them to AdamW.
  bool is_table = false;
};

/// A tensor beside the parameters that lives as long as the run: in checkpoints, equal on all ranks. float32;
/// one that loss() doesn't write may also be float64, int64, uint8 or bool. Contiguous, never replaced.
struct State {
  enum class WrittenBy {
    nobody,   ///< a constant
    forward,  ///< by loss(), as BatchNorm's statistics are: averaged over the ranks after each step
    update,   ///< by update(), from statistics that all ranks have added up, or from the parameters
  };
  std::string name;
  at::Tensor tensor;
  WrittenBy by = WrittenBy::nobody;
};

/// Floats that loss() adds to, and that all ranks add up with the gradients: update() gets the sum.
struct Statistic {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// Which sample of a set a draw is.
enum class Order {
  shuffled,  ///< an epoch has each sample once, in an order of its own
  random,    ///< any sample at any draw
  counted,   ///< the number of the draw: data that is computed, without an end
};

struct DataSet {
  std::string name;           ///< of several: as declared
  std::int64_t training = 0;  ///< samples
  std::int64_t held_out = 0;  ///< samples; 0: it is never evaluated
  Order order = Order::shuffled;
  double epoch = 0;         ///< samples that make one pass; 0: `training`
  std::uint64_t hash = 0;   ///< of what it holds, the same on every host; 0: not known
  std::string source = {};  ///< for people: the path
  std::uint64_t bytes = 0;  ///< of `source`
};

/// Samples to load: some of a step's batch, or of what is held out. All are of one data set.
struct Samples {
  int set = 0;  ///< its place in data()
  bool held_out = false;
  std::span<const std::int64_t> indexes;  ///< in [0, training) or [0, held_out) of the set
  /// One number for each, different in every epoch of its set: what random numbers of augmentation are drawn
  /// from. Held out: the indexes.
  std::span<const std::int64_t> draws;
};

/// What goes through the model at once.
struct Batch {
  std::vector<at::Tensor> tensors;  ///< made on the processors; loss() gets them on the run's device
  double weight = 0;  ///< tokens, images, …: what loss and gradients are divided by, once added up
  int set = 0;        ///< as of Samples
  bool held_out = false;
};

// ---------------------------------------------------------------- what footplate offers a task

/// Settings, by their full names: "task.dropout", "train.batch_size". A name or type that isn't there throws.
class Values {
 public:
  virtual bool boolean(const std::string& name) const = 0;
  virtual std::int64_t integer(const std::string& name) const = 0;
  virtual double number(const std::string& name) const = 0;  ///< of an integer, too
  virtual std::string text(const std::string& name) const = 0;

 protected:
  ~Values() = default;
};

/// What an action is called with, by the names of its parameters; their initial values are filled in.
class Arguments : public Values {
 public:
  virtual bool has(const std::string& name) const = 0;  ///< false: left out, and without an initial value
  virtual std::string json() const = 0;                 ///< all of them: {"path": "a.wav", "seconds": 3}

 protected:
  ~Arguments() = default;
};

/// Where loss() and evaluate() put what they count. Sums stay on the device; nothing waits for it.
class Sums {
 public:
  /// `sum`: one element, over the batch. An undeclared name throws.
  virtual void add(const std::string& metric, const at::Tensor& sum) = 0;
  /// `values`: of the statistic's shape. Not while evaluating.
  virtual void add_statistic(const std::string& statistic, const at::Tensor& values) = 0;

 protected:
  ~Sums() = default;
};

/// What a task is made with; it lives as long as the task.
class Host {
 public:
  virtual const Values& settings() const = 0;  ///< at the start
  virtual at::Device device() const = 0;       ///< where parameters and states belong
  virtual std::uint64_t seed() const = 0;      ///< run.seed: all random numbers follow from it
  virtual int world_size() const = 0;          ///< at the start; ranks may be lost and come back
  /// Of now. For files alone: rank 0 writes what there is to be once. Another one may be rank 0 after a loss.
  virtual int rank() const = 0;
  virtual std::string folder() const = 0;               ///< the run's, for files; empty: it has none
  virtual void log(const std::string& text) const = 0;  ///< a line in this rank's log; any thread

 protected:
  ~Host() = default;
};

// ---------------------------------------------------------------- the task

/// What is trained. One in each rank, and a second one where evaluations run beside training (eval.async).
/// All ranks have to come to the same: what a task does follows from the settings, the seed and the samples
/// it is asked for, never from a rank's number or from what it was asked before. Training thread, except
/// load().
///
/// What loss(), load() or learning_rate() throws fails the step on all ranks, with the text of the exception;
/// nothing is written, no rank hangs. What update() throws ends the run: by then the optimizer writes.
class Task {
 public:
  virtual ~Task() = default;

  /// The same tensors at every call, in one order on all ranks.
  virtual std::vector<Parameter> parameters() = 0;
  virtual std::vector<Group> groups() { return {}; }
  virtual std::vector<State> state() { return {}; }
  virtual std::vector<Statistic> statistics() { return {}; }

  /// At least one set; several are all those of the declaration. A moment's work, called once.
  virtual std::vector<DataSet> data() = 0;
  /// A function of `samples`, and of the settings that changed() told last. Any thread, several at once
  /// (data.workers), also beside loss(); never beside changed() or call(). Not empty.
  virtual Batch load(const Samples& samples) = 0;

  /// Tensors that follow those of load() in a batch and depend on the draws, where that task is cacheable:
  /// they are made each time. As load().
  virtual std::vector<at::Tensor> by_draw(const Samples& /*samples*/) { return {}; }

  /// The sum of the loss over the batch's weight: one float, differentiable.
  virtual at::Tensor loss(const Batch& batch, Sums& sums) = 0;
  /// The same for what is held out, without gradients.
  virtual at::Tensor evaluate(const Batch& batch, Sums& sums) { return loss(batch, sums); }
  /// Before loss() with true, before evaluate() with false: the model's mode.
  virtual void training(bool /*on*/) {}
  /// After each step, once all parameters are those of that step, with the sums over all ranks, in the order
  /// of statistics(); also where there are none. Writes states of WrittenBy::update. `skip`: one float on the
  /// device; where it is 1, nothing may be written.
  virtual void update(const std::vector<at::Tensor>& /*statistics*/, const at::Tensor& /*skip*/) {}

  /// Whether settings may become these; empty: yes, else the reason. Changes nothing. Control thread; once
  /// the task is made, before changed(), the thread that has made it asks about those of the start. Orders
  /// that change no setting, or train.micro_batch alone, aren't asked about: a run can always be paused,
  /// saved and stopped.
  virtual std::string prepare(const Values& /*after*/) { return {}; }
  /// Settings are these from `step` on. Also once the task is made, for step 0 (what it throws then keeps the
  /// run from starting), and before the first step. Later, what it throws fails the next step: prepare() is
  /// there to refuse.
  virtual void changed(const Values& /*now*/, std::int64_t /*step*/) {}
  /// One of the declared actions, on all ranks before one step. Returns JSON or nothing: whoever asked gets
  /// rank 0's. What it throws is the answer, and training goes on. A replay of the run calls it again.
  virtual std::string call(const std::string& action, const Arguments& /*arguments*/, std::int64_t /*step*/) {
    throw std::runtime_error("the task declares the action " + action + " and doesn't have it");
  }

  /// The finite learning rate of a step, instead of sched.*: before optim.lr_scale. Nothing: that of sched.*.
  virtual std::optional<double> learning_rate(std::int64_t /*step*/) const { return std::nullopt; }
  /// Whether backward computes parts of the model once more, instead of keeping what forward has computed:
  /// the same to the last bit.
  virtual void recompute(bool /*on*/) {}
  virtual bool can_recompute() const { return false; }
  /// Whether loss() enqueues the same work for all batches of one shape, and update() the same after each
  /// step, and neither reads anything back: then a device may record them (train.cuda_graph).
  virtual bool can_be_recorded() const { return false; }
  /// Floating-point operations of forward and backward for one unit of weight; 0: not known. Asked behind
  /// each changed().
  virtual double flops_per_weight() const { return 0; }
  /// For the log, what the model's parts run on in that precision ("attention: flash"); empty: nothing to
  /// tell.
  virtual std::string runs_on(bool /*bf16*/) const { return {}; }
};

// ---------------------------------------------------------------- how a plugin is found

/// The symbol `footplate_task` of a plugin.
struct Descriptor {
  std::uint32_t size = sizeof(Descriptor);
  std::uint32_t api = kApi;
  const char* torch =
      TORCH_VERSION;  ///< LibTorch's C++ interface is the plugin's: another version is refused
#ifdef _GLIBCXX_USE_CXX11_ABI
  int cxx11_abi = _GLIBCXX_USE_CXX11_ABI;
#else
  int cxx11_abi = -1;
#endif
  const char* name = nullptr;
  Declaration (*declare)() = nullptr;
  Task* (*make)(const Host& host) = nullptr;  ///< may throw: the run doesn't start, and says why
};

}  // namespace footplate::v1

/// Makes a plugin of a class with `static Declaration declare()` and a constructor from `const Host&`. Once,
/// outside of namespaces. `footplate_task_built_with` is read before the library is opened: what was built
/// with another LibTorch is refused, never tried.
#define FOOTPLATE_TASK(NAME, TYPE)                                                                     \
  extern "C" {                                                                                         \
  __attribute__((visibility("default"))) extern const char footplate_task_built_with[];                \
  __attribute__((used)) const char footplate_task_built_with[] =                                       \
      "footplate task: api 4, torch " TORCH_VERSION ";";                                               \
  __attribute__((visibility("default"))) extern const footplate::v1::Descriptor footplate_task;        \
  __attribute__((used)) const footplate::v1::Descriptor footplate_task = {                             \
      .name = #NAME,                                                                                   \
      .declare = [] { return TYPE::declare(); },                                                       \
      .make = [](const footplate::v1::Host& host) -> footplate::v1::Task* { return new TYPE(host); }}; \
  }                                                                                                    \
  static_assert(footplate::v1::kApi == 4)
