#include "fixture.h"
#include "protocol/exit_codes.h"
#include "protocol/json.h"

namespace footplate {
namespace {

constexpr ErrorKind kKinds[] = {ErrorKind::usage,   ErrorKind::script,    ErrorKind::unreachable,
                                ErrorKind::refused, ErrorKind::timed_out, ErrorKind::failed};

TEST(ErrorJson, RoundTrip) {
  for (const ErrorKind kind : kKinds) {
    const Error error = error_from_json(to_json(Error{kind, "what, where"}));
    EXPECT_EQ(error.kind, kind);
    EXPECT_EQ(error.message, "what, where");
  }
}

TEST(ErrorJson, AnythingIsAnErrorOfSomeKind) {
  for (const Json& json : {Json(), Json(1), Json::array(), Json::object(), Json{{"kind", 1}, {"message", 2}},
                           Json{{"kind", "odd"}}}) {
    const Error error = error_from_json(json);
    EXPECT_EQ(error.kind, ErrorKind::failed);
    EXPECT_FALSE(error.message.empty());
  }
  EXPECT_EQ(error_from_json("text").message, "text");
}

TEST(ExitCodes, AreTheDocumentedOnes) {
  const int expected[] = {2, 3, 4, 5, 6, 1};
  for (std::size_t i = 0; i < std::size(kKinds); ++i)
    EXPECT_EQ(static_cast<int>(exit_code_for(kKinds[i])), expected[i]);
  EXPECT_EQ(static_cast<int>(ExitCode::done), 0);
  EXPECT_EQ(static_cast<int>(ExitCode::resumable), 75);
}

}  // namespace
}  // namespace footplate
