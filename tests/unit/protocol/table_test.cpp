// The table of settings and actions itself: every entry is complete and agrees with itself.
#include <cctype>
#include <set>

#include "fixture.h"
#include "protocol/settings.h"
#include "protocol/task_name.h"
#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using test::message;

const std::set<std::string> kLuaKeywords{
    "and", "break", "do",  "else", "elseif", "end",    "false",  "for",  "function", "goto",  "if",
    "in",  "local", "nil", "not",  "or",     "repeat", "return", "then", "true",     "until", "while"};

bool is_dotted_name(const std::string& name) {
  const auto dot = name.find('.');
  if (dot == std::string::npos || name.find('.', dot + 1) != std::string::npos) return false;
  for (const std::string& part : {name.substr(0, dot), name.substr(dot + 1)})
    if (part.empty() || kLuaKeywords.contains(part) ||
        part.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
      return false;
  return true;
}

TEST(Table, EveryEntryHasWhatHelpAndCompletionNeed) {
  const Schema schema = runtime_schema();
  std::set<std::string> names;
  for (const auto& spec : schema.settings) {
    EXPECT_TRUE(names.insert(spec.name).second) << spec.name << " twice";
    EXPECT_TRUE(is_dotted_name(spec.name)) << spec.name;
    EXPECT_FALSE(spec.help.empty()) << spec.name;
    EXPECT_NE(spec.example.find(spec.name), std::string::npos) << spec.name << ": " << spec.example;
    if (spec.syntax != kTaskName) {
      EXPECT_EQ(spec.type == Type::choice, !spec.choices.empty()) << spec.name;
    }
    for (const auto& alias : spec.aliases) EXPECT_EQ(schema.setting(alias), nullptr) << alias;
    for (const auto& knob : spec.knobs) EXPECT_NE(schema.setting(knob), nullptr) << knob;
  }
  for (const auto& action : schema.actions) {
    EXPECT_TRUE(names.insert(action.name).second) << action.name << " twice";
    EXPECT_TRUE(is_dotted_name(action.name)) << action.name;
    EXPECT_FALSE(action.help.empty()) << action.name;
    EXPECT_FALSE(action.result.empty()) << action.name;
    EXPECT_NE(action.example.find(action.name), std::string::npos) << action.name;
    for (const auto& param : action.params)
      EXPECT_FALSE(param.help.empty()) << action.name << " " << param.name;
  }
}

/// What users of other programs type, from the field reports and from the usual trainers.
TEST(Table, NamesOfOtherProgramsAreAnswered) {
  const Schema schema = runtime_schema();
  for (const char* name : {"eval_steps",
                           "logging_steps",
                           "save_steps",
                           "dataloader_num_workers",
                           "dataloader_prefetch_factor",
                           "amp",
                           "gradient_checkpointing",
                           "use_gpu_cache",
                           "num_epochs",
                           "multi_length_training",
                           "log_dataset_metrics",
                           "reduced_logging",
                           "NCCL_TIMEOUT",
                           "CUDA_LAUNCH_BLOCKING",
                           "max_steps",
                           "lr",
                           "per_device_train_batch_size",
                           "gradient_accumulation_steps",
                           "warmup_steps",
                           "weight_decay",
                           "seed",
                           "output_dir",
                           "report_to",
                           "pin_memory",
                           "persistent_workers",
                           "fp16",
                           "bf16",
                           "train.epochs"}) {
    const std::string answer = schema.unknown_setting(name);
    EXPECT_EQ(answer.find("lists them all"), std::string::npos) << answer;
    EXPECT_TRUE(answer.find("it is called") != std::string::npos || answer.find("': ") != std::string::npos)
        << answer;
  }
}

TEST(Table, HelpIsSentencesThatStandAlone) {
  const Schema schema = runtime_schema();
  const auto check = [](const std::string& name, const std::string& help) {
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(help.front()))) << name << ": " << help;
    EXPECT_NE(help.back(), '.') << name << ": what shows it ends the sentence";
    for (const char* riddle :
         {"likewise", "Likewise", "so many", "come to nothing", "mend", "anew", "The same,"})
      EXPECT_EQ(help.find(riddle), std::string::npos) << name << ": " << help;
  };
  for (const auto& spec : schema.settings) check(spec.name, spec.help);
  for (const auto& action : schema.actions) check(action.name, action.help);
}

TEST(Table, DefaultsAreAllowedUsualAndFitTogether) {
  const Schema schema = runtime_schema();
  for (const auto& spec : schema.settings) {
    const auto value = schema.check(spec.name, to_json(spec.default_value));
    ASSERT_TRUE(value) << message(value);
    EXPECT_EQ(*value, spec.default_value) << spec.name;
    const auto* number = std::get_if<double>(&spec.default_value);
    EXPECT_TRUE(number == nullptr || spec.usual.contains(*number)) << spec.name;
  }
  EXPECT_TRUE(schema.check_combination(Settings::defaults(schema)));
  for (const auto& rule : schema.constraints) {
    EXPECT_NE(schema.setting(rule.a), nullptr) << rule.a;
    EXPECT_NE(schema.setting(rule.b), nullptr) << rule.b;
  }
}

TEST(Table, WhatNcclCantDoTogetherIsRefused) {
  const Schema schema = runtime_schema();
  const auto together = [&](const std::vector<std::pair<const char*, Json>>& values) {
    Settings settings = Settings::defaults(schema);
    for (const auto& [name, value] : values) settings.set(name, schema.check(name, value).value(), "x.lua:1");
    return message(schema.check_combination(settings));
  };
  EXPECT_EQ(together({{"nccl.min_ctas", 8}, {"nccl.max_ctas", 4}}),
            "nccl.min_ctas (8, from x.lua:1) is larger than nccl.max_ctas (4, from x.lua:1): no number of "
            "channels is in between");
  EXPECT_EQ(together({{"nccl.min_ctas", 8}, {"nccl.max_ctas", 8}}), "accepted");
  EXPECT_EQ(together({{"nccl.min_ctas", 8}}), "accepted");
  EXPECT_EQ(together({{"nccl.max_ctas", 8}}), "accepted");
  EXPECT_EQ(together({{"nccl.socket_threads", 16}, {"nccl.sockets_per_thread", 64}}),
            "nccl.socket_threads (16, from x.lua:1) times nccl.sockets_per_thread (64, from x.lua:1) is more "
            "than 64: NCCL has no more sockets for a connection");
  EXPECT_EQ(together({{"nccl.socket_threads", 16}, {"nccl.sockets_per_thread", 4}}), "accepted");
  EXPECT_EQ(together({{"nccl.rules", "..64MiB tree ll 4 channels"}}),
            "nccl.rules (all_reduce ..64MiB tree ll 4 channels, from x.lua:1) has more channels than "
            "nccl.min_ctas (0, from default): every communicator has so many; set that first, or in the same "
            "order");
  EXPECT_EQ(together({{"nccl.rules", "..64MiB tree ll 4 channels"}, {"nccl.min_ctas", 4}}), "accepted");
}

TEST(Table, SurvivesItsJson) {
  const Json json = runtime_schema().to_json();
  const auto again = Schema::from_json(*parse_line(to_line(json)));
  ASSERT_TRUE(again) << message(again);
  EXPECT_EQ(again->to_json(), json);
  EXPECT_LT(to_line(json).size(), kMaxFrameBytes);
}

}  // namespace
}  // namespace footplate
