#include "runtime/tasks/rvq_task.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "protocol/json.h"
#include "runtime/data/sampler.h"
#include "runtime/data/wav.h"
#include "runtime/tasks/hosted_task.h"

namespace footplate {
namespace {

/// The data sets: windows of so many samples.
struct Length {
  const char* name;
  std::int64_t samples;
};
constexpr std::array kLengths{Length{"short", 1024}, Length{"medium", 2048}, Length{"long", 4096}};
static_assert(std::ranges::all_of(kLengths,
                                  [](const Length& one) { return one.samples % RvqCodec::kStride == 0; }));

/// What random numbers of different use begin with.
constexpr std::uint64_t kOfCodebooks = 1, kOfWindows = 2;
constexpr const char* kCounts = "counts";
constexpr const char* kSums = "sums";
/// Of a report: enough of what is held out to see all codes, and a moment's work.
constexpr std::int64_t kReported = 256, kReportedAtOnce = 32;
constexpr double kMostSeconds = 60;  ///< of what is written: all ranks wait meanwhile

Recordings open_recordings(const v1::Values& settings) {
  auto recordings = Recordings::open(settings.text("data.corpus"), settings.integer("task.rate"));
  if (!recordings) throw TaskError(recordings.error());
  return *std::move(recordings);
}

/// The root mean square of what is trained on.
double usual_size(const Recordings& recordings) {
  double sum = 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < recordings.count(); ++i) {
    if (recordings.is_held_out(i)) continue;
    for (const std::int16_t sample : recordings.samples(i)) sum += static_cast<double>(sample) * sample;
    count += recordings.samples(i).size();
  }
  if (sum == 0)
    throw TaskError({ErrorKind::usage, "data.corpus: all recordings that aren't held out are silent"});
  return std::sqrt(sum / static_cast<double>(count));
}

CodecShape shape_of_codec(const v1::Values& settings) {
  return {.width = settings.integer("task.width"), .vector_width = settings.integer("task.vector_width")};
}

QuantiserShape shape_of_quantiser(const v1::Values& settings) {
  return {.codebooks = settings.integer("task.codebooks"),
          .codes = settings.integer("task.codes"),
          .width = settings.integer("task.vector_width")};
}

std::vector<v1::SettingDecl> own_settings() {
  return {
      {.name = "codebooks",
       .initial = "4",
       .help = "So many codebooks stand for a vector, one after the other: each for what the ones before "
               "it leave.",
       .min = 1,
       .max = 64,
       .usual_max = 32,
       .aliases = {"num_quantizers", "n_codebooks", "num_codebooks", "quantizers"},
       .applies = "fixed"},
      {.name = "codes",
       .initial = "256",
       .help = "Each codebook has so many codes.",
       .min = 2,
       .max = 65536,
       .usual_max = 16384,
       .aliases = {"codebook_size", "num_embeddings", "n_codes"},
       .applies = "fixed"},
      {.name = "vector_width",
       .initial = "64",
       .help = "A vector stands for 16 samples of audio, and has this width; a code is as wide.",
       .min = 1,
       .max = 4096,
       .aliases = {"latent_dim", "codebook_dim", "embedding_dim"},
       .applies = "fixed"},
      {.name = "width",
       .initial = "48",
       .help = "Encoder and decoder have this many channels at a quarter of the rate, and twice as many at "
               "a sixteenth of it.",
       .unit = "channels",
       .min = 1,
       .max = 4096,
       .aliases = {"channels", "hidden_dim"},
       .applies = "fixed"},
      {.name = "rate",
       .initial = "8000",
       .help = "All recordings have so many samples a second.",
       .unit = "samples/s",
       .min = 1000,
       .max = 192000,
       .aliases = {"sample_rate", "sampling_rate"},
       .applies = "fixed"},
      {.name = "commitment",
       .initial = "0.25",
       .help = "The distance of vectors from their codes counts this much in the loss, beside the error of "
               "the reconstruction.",
       .min = 0,
       .max = 1000,
       .usual_max = 10,
       .aliases = {"commitment_weight", "commitment_cost", "beta"}},
      {.name = "decay",
       .initial = "0.99",
       .help = "Codes are running means of the vectors that they stood for; what was before decays by this "
               "factor in each step.",
       .min = 0,
       .max = 1,
       .usual_min = 0.5,
       .usual_max = 0.9999,
       .aliases = {"ema_decay"}},
      {.name = "dead_below",
       .initial = "0.05",
       .help = "A code that is chosen less often than this share of the mean of its codebook is replaced by "
               "a half of one that is chosen often. 0 replaces none.",
       .min = 0,
       .max = 1,
       .usual_max = 0.5,
       .aliases = {"threshold_ema_dead_code", "dead_threshold"}}};
}

std::vector<v1::ParamDecl> audio_parameters() {
  return {
      {.name = "recording",
       .kind = "integer",
       .initial = "0",
       .help = "Which of the recordings that are held out, in the order of their paths."},
      {.name = "seconds", .kind = "number", .initial = "10.0", .help = "At most so much of it, up to 60."},
      {.name = "name",
       .kind = "string",
       .initial = "\"step\"",
       .help = "The files' names begin with this and the step."}};
}

/// As samples of 16 bits; louder ones are clipped.
std::vector<std::int16_t> as_samples(const at::Tensor& audio, double scale) {
  const at::Tensor whole = audio.mul(scale).round().clamp(-32768, 32767).to(at::kShort).cpu().contiguous();
  return {whole.const_data_ptr<std::int16_t>(), whole.const_data_ptr<std::int16_t>() + whole.numel()};
}

/// Over so many held-out vectors: the share of codes that were chosen, and the perplexity, of each codebook.
std::string report_of(const at::Tensor& counts, std::int64_t vectors) {
  const at::Tensor shares = counts / static_cast<double>(std::max<std::int64_t>(1, vectors));
  const at::Tensor in_use = counts.gt(0).to(at::kDouble).mean(1).cpu();
  const at::Tensor perplexity =
      (shares * shares.clamp_min(1e-30).log()).sum(1).neg().exp().to(at::kDouble).cpu();
  const auto list = [](const at::Tensor& of) {
    return std::vector<double>(of.const_data_ptr<double>(), of.const_data_ptr<double>() + of.numel());
  };
  return Json{{"vectors", vectors}, {"codes_in_use", list(in_use)}, {"perplexity", list(perplexity)}}.dump();
}

}  // namespace

v1::Declaration RvqTask::declare() {
  v1::Declaration declaration{
      .unit = "audio samples",
      .uses = {"data.corpus"},
      .settings = own_settings(),
      .actions = {{.name = "codebook_report",
                   .help =
                       "Tells how the codes are used on recordings that are held out: which share of each "
                       "codebook, and its perplexity."},
                  {.name = "write_audio",
                   .help =
                       "Writes a recording that is held out, and what the codec makes of it, as WAV files "
                       "into the folder audio/ of the run.",
                   .params = audio_parameters()}},
      .metrics = {{.name = "reconstruction"},
                  {.name = "commitment"},
                  {.name = "codes_in_use"},
                  {.name = "perplexity"}},
      .cacheable = true};
  for (const Length& length : kLengths)
    declaration.sets.push_back(
        {.name = length.name, .help = fmt::format("It has windows of {} samples.", length.samples)});
  return declaration;
}

RvqTask::RvqTask(const v1::Host& host)
    : host_(host),
      rate_(host.settings().integer("task.rate")),
      seed_(host.seed()),
      recordings_(open_recordings(host.settings())),
      sets_(make_sets()),
      usual_size_(usual_size(recordings_)),
      size_(at::full({1}, usual_size_, at::TensorOptions(at::kFloat).device(host.device()))),
      codec_(shape_of_codec(host.settings()), host.seed(), host.device()),
      quantiser_(shape_of_quantiser(host.settings()), counter_hash(host.seed(), kOfCodebooks),
                 host.device()) {}

std::vector<RvqTask::Set> RvqTask::make_sets() const {
  std::vector<Set> sets;
  for (const Length& length : kLengths) {
    Set set{.name = length.name,
            .training = Windows(recordings_, length.samples, /*held_out=*/false),
            .held_out = Windows(recordings_, length.samples, /*held_out=*/true)};
    const std::string share = fmt::format("data.share.{}", length.name);
    if (set.training.count() == 0 && host_.settings().number(share) > 0)
      throw TaskError(
          {ErrorKind::usage,
           fmt::format("data.corpus: no recording to train on has {} samples, which a window of the "
                       "data set '{}' has; take longer recordings, or set {} = 0",
                       length.samples, length.name, share)});
    sets.push_back(std::move(set));
  }
  return sets;
}

std::vector<v1::State> RvqTask::state() {
  std::vector<v1::State> all = quantiser_.state();
  for (v1::State& one : all) one.name = "quantiser." + one.name;
  all.push_back({"usual_size", size_, v1::State::WrittenBy::nobody});
  return all;
}

std::vector<v1::Statistic> RvqTask::statistics() {
  const QuantiserShape& shape = quantiser_.shape();
  return {{kCounts, {shape.codebooks, shape.codes}}, {kSums, {shape.codebooks, shape.codes, shape.width}}};
}

std::vector<v1::DataSet> RvqTask::data() {
  const CorpusIdentity identity = recordings_.identity();
  std::vector<v1::DataSet> all;
  for (const Set& set : sets_)
    all.push_back({.name = set.name,
                   .training = set.training.count(),
                   .held_out = set.held_out.count(),
                   .hash = identity.hash,
                   .source = identity.path,
                   .bytes = identity.bytes});
  return all;
}

/// Windows of 16 bits as they are in the recordings, each with what it may be shifted by: the same in every
/// epoch.
v1::Batch RvqTask::load(const v1::Samples& samples) {
  const Set& set = sets_[static_cast<std::size_t>(samples.set)];
  const Windows& windows = samples.held_out ? set.held_out : set.training;
  const auto count = static_cast<std::int64_t>(samples.indexes.size());
  const std::int64_t columns = samples.held_out ? windows.length() : 2 * windows.length() - 1;
  at::Tensor rows = at::zeros({count, columns}, at::kShort);
  std::int16_t* to = rows.mutable_data_ptr<std::int16_t>();
  for (const std::int64_t index : samples.indexes) {
    std::ranges::copy(samples.held_out ? windows.at(index) : windows.with_room(index), to);
    to += columns;
  }
  return {.tensors = {std::move(rows)}, .weight = static_cast<double>(count * windows.length())};
}

/// Where in its row each window begins, as [rows, 1].
std::vector<at::Tensor> RvqTask::by_draw(const v1::Samples& samples) {
  const Windows& windows = sets_[static_cast<std::size_t>(samples.set)].training;
  std::vector<std::int64_t> shifts(samples.indexes.size());
  for (std::size_t i = 0; i < shifts.size() && !samples.held_out; ++i)
    shifts[i] = windows.shift(samples.indexes[i],
                              counter_hash(seed_ + kOfWindows, static_cast<std::uint64_t>(samples.draws[i])));
  return {at::tensor(shifts).unsqueeze(1)};
}

/// The windows of a batch as float32 [rows, length], in units of their usual size.
at::Tensor RvqTask::audio_of(const v1::Batch& batch) const {
  const at::Tensor& rows = batch.tensors[0];
  const std::int64_t length = sets_[static_cast<std::size_t>(batch.set)].training.length();
  const at::Tensor columns = batch.tensors[1].add(at::arange(length, batch.tensors[1].options()));
  return rows.gather(1, columns).to(at::kFloat).mul(static_cast<double>(scale()));
}

/// Rows of audio as float32 [rows, length], in units of its usual size.
at::Tensor RvqTask::scaled(const std::vector<std::span<const std::int16_t>>& rows) const {
  at::Tensor audio = at::empty(
      {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows.front().size())}, at::kFloat);
  float* to = audio.mutable_data_ptr<float>();
  for (const auto row : rows)
    to = std::ranges::transform(row, to, [factor = scale()](std::int16_t sample) {
           return factor * static_cast<float>(sample);
         }).out;
  return audio;
}

RvqTask::Passed RvqTask::pass(const at::Tensor& audio) const {
  Passed passed;
  passed.vectors = codec_.encode(audio);
  passed.quantised = quantiser_.quantise(passed.vectors);
  const at::Tensor again = codec_.decode(passed.quantised.values, audio.size(0));
  passed.error = (again.to(at::kFloat) - audio).square().sum();
  // A vector's error counts for all samples of audio that it stands for.
  passed.quantised.commitment = passed.quantised.commitment * static_cast<double>(RvqCodec::kStride);
  return passed;
}

/// What is one number for all ranks counts with the batch's weight, so that the mean is that number.
void RvqTask::add_metrics(const Passed& passed, double weight, v1::Sums& sums) const {
  sums.add("reconstruction", passed.error);
  sums.add("commitment", passed.quantised.commitment);
  sums.add("codes_in_use", quantiser_.share_in_use(pace_.decay) * weight);
  sums.add("perplexity", quantiser_.perplexity() * weight);
}

at::Tensor RvqTask::loss(const v1::Batch& batch, v1::Sums& sums) {
  const Passed passed = pass(audio_of(batch));
  const auto use = quantiser_.use_of(passed.vectors, passed.quantised.indexes);
  sums.add_statistic(kCounts, use.counts);
  sums.add_statistic(kSums, use.sums);
  add_metrics(passed, batch.weight, sums);
  return passed.error + passed.quantised.commitment * commitment_;
}

at::Tensor RvqTask::evaluate(const v1::Batch& batch, v1::Sums& sums) {
  const Passed passed = pass(audio_of(batch));
  add_metrics(passed, batch.weight, sums);
  return passed.error;
}

void RvqTask::update(const std::vector<at::Tensor>& statistics, const at::Tensor& skip) {
  quantiser_.update({.counts = statistics[0], .sums = statistics[1]}, skip, pace_);
}

void RvqTask::changed(const v1::Values& now, std::int64_t /*step*/) {
  commitment_ = now.number("task.commitment");
  pace_ = {.decay = now.number("task.decay"), .dead_below = now.number("task.dead_below")};
}

std::string RvqTask::call(const std::string& action, const v1::Arguments& arguments, std::int64_t step) {
  const at::NoGradGuard no_grad;
  return action == "write_audio" ? write_audio(arguments, step) : report_codebooks();
}

std::string RvqTask::report_codebooks() {
  const std::int64_t windows = std::min(sets_.back().held_out.count(), kReported);
  at::Tensor counts = at::zeros({quantiser_.shape().codebooks, quantiser_.shape().codes}, size_.options());
  std::int64_t vectors = 0;
  for (std::int64_t first = 0; first < windows; first += kReportedAtOnce) {
    std::vector<std::int64_t> indexes(static_cast<std::size_t>(std::min(kReportedAtOnce, windows - first)));
    std::iota(indexes.begin(), indexes.end(), first);
    std::vector<std::span<const std::int16_t>> rows;
    for (const std::int64_t index : indexes) rows.push_back(sets_.back().held_out.at(index));
    const at::Tensor encoded = codec_.encode(scaled(rows).to(size_.device()));
    counts += quantiser_.use_of(encoded, quantiser_.quantise(encoded).indexes).counts;
    vectors += encoded.size(0);
  }
  return report_of(counts, vectors);
}

/// The n-th of those that are held out.
std::size_t RvqTask::held_out_recording(std::int64_t number) const {
  std::int64_t held_out = 0;
  for (std::size_t i = 0; i < recordings_.count(); ++i)
    if (recordings_.is_held_out(i) && held_out++ == number) return i;
  throw std::runtime_error(fmt::format("recording is {}; {} are held out, from 0 on", number, held_out));
}

std::string RvqTask::write_audio(const v1::Arguments& arguments, std::int64_t step) {
  const std::string name = arguments.text("name");
  if (name.empty() || name.starts_with('.') || name.find('/') != std::string::npos)
    throw std::runtime_error(
        fmt::format("name is \"{}\"; it has to be the beginning of a file's name", name));
  const double seconds = arguments.number("seconds");
  if (!(seconds > 0 && seconds <= kMostSeconds))
    throw std::runtime_error(
        fmt::format("seconds is {}; it has to be above 0, and {} at most", seconds, kMostSeconds));
  const std::size_t recording = held_out_recording(arguments.integer("recording"));
  if (host_.rank() != 0 || host_.folder().empty()) return "";

  const auto samples = recordings_.samples(recording);
  const auto wanted = static_cast<std::size_t>(seconds * static_cast<double>(rate_));
  // Whole vectors.
  const std::size_t length = std::min(samples.size(), wanted) / RvqCodec::kStride * RvqCodec::kStride;
  if (length == 0) throw std::runtime_error("that is too short to write anything");
  const auto original = samples.first(length);
  const at::Tensor audio = scaled({original}).to(size_.device());
  const at::Tensor again = codec_.decode(quantiser_.quantise(codec_.encode(audio)).values, 1);

  const std::filesystem::path folder = std::filesystem::path(host_.folder()) / "audio";
  std::filesystem::create_directories(folder);
  const std::string stem = fmt::format("{}-{}-recording-{}", name, step, arguments.integer("recording"));
  const auto write = [&](const char* what, std::span<const std::int16_t> heard) {
    const auto path = folder / fmt::format("{}-{}.wav", stem, what);
    if (const auto written = write_wav(path, heard, rate_); !written) throw TaskError(written.error());
    return path.string();
  };
  const Json error = (again - audio).square().mean().item<double>();
  return Json{{"of", recordings_.path(recording).string()},
              {"original", write("original", original)},
              {"reconstruction", write("reconstruction", as_samples(again, usual_size_))},
              {"error", error}}
      .dump();
}

double RvqTask::flops_per_weight() const {
  const QuantiserShape& shape = quantiser_.shape();
  constexpr double kForward = 2;
  return codec_.flops_per_sample() + kForward *
                                         static_cast<double>(shape.codebooks * shape.codes * shape.width) /
                                         static_cast<double>(RvqCodec::kStride);
}

}  // namespace footplate
