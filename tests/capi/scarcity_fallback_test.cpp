// Memory runs out at each point of the life of a session whose provider fails, so that a second one
// takes its place.
#include "capi/model_builder.h"
#include "capi/scarcity.h"

namespace tenon::test {
namespace {

// The sum is on a provider that fails once.
OrtStatus* AddFailingProvider(OrtEnv*, OrtSessionOptions* options) {
  const char *const key = "fail", *const where = "run";
  OrtStatus* const status = Api().AddSessionConfigEntry(options, "tenon.ep_fail_fallback", "1");
  if (status != nullptr) return status;
  return Api().SessionOptionsAppendExecutionProvider(options, "ProbeExecutionProvider", &key,
                                                     &where, 1);
}

TEST(ScarcityTest, ASessionThatFallsBack) {
  SurvivesScarcity(SessionLife(AddReluModel(), AddFailingProvider), 3);
}

}  // namespace
}  // namespace tenon::test
