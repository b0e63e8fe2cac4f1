#include "runtime/tasks/declared_schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/schema/schema_table.h"

namespace footplate {
namespace {

using ::testing::HasSubstr;

std::string refusal_of_metric(const std::string& name) {
  const auto schema = with_declared(runtime_schema(), {.metrics = {{.name = name}}}, "plugin:a.so");
  return schema ? "" : schema.error().message;
}

TEST(DeclaredSchema, AMetricHasNoNameOfFootplatesOwn) {
  EXPECT_EQ(refusal_of_metric("accuracy"), "");
  for (const char* own : {"loss", "best", "lr", "seconds"})
    EXPECT_THAT(refusal_of_metric(own),
                HasSubstr("the metric '" + std::string(own) + "': footplate has one"));
}

}  // namespace
}  // namespace footplate
