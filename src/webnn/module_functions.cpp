// Replaces capi/experimental.cpp in the module of the npm package, which links this file
// separately: the functions beyond the tables that web/shim calls.
#include "capi/boundary/slots.h"
#include "capi/session/reports.h"
#include "webnn/c_api.h"

namespace tenon::capi {

OrtExperimentalFnPtr GetExperimentalFunction(const char* name) noexcept {
  if (const OrtExperimentalFnPtr report = FindReportFunction(name)) return report;
  return webnn::FindFunction(name);
}

}  // namespace tenon::capi
